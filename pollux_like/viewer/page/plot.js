// Usage per turn: two stacks of bars on one axis of turns, drawn here, readable by mouse, keys and screen readers.

import {el, get, many, number, svg, told} from "./dom.js";

const MOST_BARS = 120;
const CHUNK = 5000;
const SERIES = [
	["input", "Input, not cached", (usage) => usage[0] - usage[1]],
	["cached", "Input from the cache", (usage) => usage[1]],
	["output", "Output", (usage) => usage[3] - usage[4]],
	["reasoning", "Reasoning", (usage) => usage[4]],
];
const PANELS = [["Input tokens", ["cached", "input"], 0, 150], ["Output tokens", ["output", "reasoning"], 175, 90]];
const HIGH = 290;
const LEFT = 56;

// Bars of one turn each, or of many with their mean.
function barsOf(usage) {
	const each = Math.max(1, Math.ceil(usage.length / MOST_BARS));
	const bars = [];
	for (let at = 0; at < usage.length; at += each) {
		const part = usage.slice(at, at + each);
		const known = part.filter((one) => one);
		const bar = {first: at + 1, last: at + part.length, known: known.length};
		const mean = (value) => known.reduce((sum, one) => sum + value(one), 0) / (known.length || 1);
		for (const [name, , value] of SERIES) bar[name] = mean(value);
		bar.write = mean((one) => one[2]);
		bars.push(bar);
	}
	return bars;
}

const round = (value) => number(Math.round(value));
const named = (bar) => (bar.first === bar.last ? `Turn ${number(bar.first)}` : `Turns ${number(bar.first)} to ${number(bar.last)}, mean`);
const said = (bar) =>
	bar.known === 0 ? `${named(bar)}: no usage is known`
		: `${named(bar)}: input ${round(bar.input + bar.cached)} (${round(bar.cached)} cached, ${round(bar.write)} written to the cache), output ${round(bar.output + bar.reasoning)} (${round(bar.reasoning)} reasoning)`;

function step(most) {
	const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
	return [1, 2, 5, 10].map((times) => times * power).find((value) => value >= most) || most;
}

function draw(bars, width, chosen) {
	const picture = svg("svg", {viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH, "aria-hidden": "true", class: "plot"});
	const wide = (width - LEFT - 8) / bars.length;
	for (const [title, names, above, high] of PANELS) {
		const top = step(Math.max(2, ...bars.map((bar) => names.reduce((sum, name) => sum + bar[name], 0))));
		const base = above + high;
		for (const part of [0, 0.5, 1]) {
			const y = base - part * (high - 24);
			const label = svg("text", {x: LEFT - 8, y: y + 4, class: "tick", "text-anchor": "end"});
			label.textContent = top < 1e6 ? number(top * part) : (top * part).toLocaleString("en", {notation: "compact"});
			picture.append(svg("line", {x1: LEFT, x2: width - 8, y1: y, y2: y, class: part ? "grid" : "axis"}), label);
		}
		const heading = svg("text", {x: LEFT, y: above + 12, class: "heading"});
		heading.textContent = title;
		picture.append(heading);
		bars.forEach((bar, index) => {
			let y = base;
			for (const name of names) {
				const tall = (bar[name] / top) * (high - 24);
				y -= tall;
				if (tall > 0) picture.append(svg("rect", {x: LEFT + index * wide + Math.min(1, wide / 8), y, width: Math.max(0.5, Math.min(wide - Math.min(2, wide / 4), 28)), height: tall, class: name}));
			}
		});
	}
	const label = (x, text, anchor) => {
		const made = svg("text", {x, y: HIGH - 8, class: "tick", "text-anchor": anchor});
		made.textContent = text;
		picture.append(made);
	};
	label(LEFT, "turn 1", "start");
	if (bars.length > 1) label(width - 8, number(bars.at(-1).last), "end");
	picture.append(svg("rect", {x: LEFT + chosen * wide, y: 0, width: Math.max(1, wide), height: HIGH - 24, class: "cursor"}));
	return picture;
}

function table(bars) {
	const cell = (value) => el("td", null, round(value));
	return el("table", {"aria-label": "Tokens"},
		el("thead", null, el("tr", null, ...["Turns", "Input", "of it cached", "cache write", "Output", "of it reasoning"].map((name) => el("th", {scope: "col"}, name)))),
		el("tbody", null, ...bars.map((bar) => el("tr", null,
			el("th", {scope: "row"}, bar.first === bar.last ? number(bar.first) : `${number(bar.first)}–${number(bar.last)}`),
			cell(bar.input + bar.cached), cell(bar.cached), cell(bar.write), cell(bar.output + bar.reasoning), cell(bar.reasoning)))));
}

// Fill a panel. `go(turn)`: called where a bar is chosen. Returns what ends it.
export async function showUsage(panel, {scope, id, count, go, signal}) {
	panel.replaceChildren(el("p", {class: "facts", role: "status"}, "Reading …"));
	const usage = [];
	try {
		while (usage.length < count) {
			const page = await get("usage", {scope, id, first: usage.length + 1, last: Math.min(count, usage.length + CHUNK)}, signal);
			if (!page.usage.length) break;
			usage.push(...page.usage);
		}
	} catch (error) {
		told(error, panel);
		return;
	}
	const known = usage.filter((one) => one);
	if (!known.length) {
		panel.replaceChildren(el("p", {class: "facts"}, "No usage is known of these turns."));
		return;
	}
	const bars = barsOf(usage);
	let chosen = 0;
	const readout = el("p", {class: "readout", id: "readout"});
	const stage = el("div", {class: "stage", tabindex: "0", role: "slider", "aria-label": "Usage by turn; Enter goes to the turn", "aria-valuemin": "1", "aria-valuemax": String(bars.length)});
	const paint = () => {
		stage.replaceChildren(draw(bars, Math.max(300, stage.clientWidth), chosen));
		stage.setAttribute("aria-valuenow", String(chosen + 1));
		stage.setAttribute("aria-valuetext", said(bars[chosen]));
		readout.textContent = said(bars[chosen]);
	};
	const choose = (index) => {
		chosen = Math.max(0, Math.min(bars.length - 1, index));
		paint();
	};
	const under = (event) => Math.floor(((event.clientX - stage.getBoundingClientRect().left - LEFT) / (stage.clientWidth - LEFT - 8)) * bars.length);
	stage.addEventListener("pointermove", (event) => choose(under(event)));
	stage.addEventListener("click", (event) => { choose(under(event)); go(bars[chosen].first); });
	stage.addEventListener("keydown", (event) => {
		const to = {ArrowLeft: chosen - 1, ArrowRight: chosen + 1, ArrowDown: chosen - 1, ArrowUp: chosen + 1, PageUp: chosen + 10, PageDown: chosen - 10, Home: 0, End: bars.length - 1}[event.key];
		if (event.key === "Enter") go(bars[chosen].first);
		if (to === undefined) return;
		event.preventDefault();
		event.stopPropagation();
		choose(to);
	});
	const sum = (value) => known.reduce((all, one) => all + value(one), 0);
	const legend = el("ul", {class: "legend"}, ...SERIES.map(([name, title, value]) => el("li", null, el("span", {class: `key ${name}`}), `${title} `, el("b", null, number(sum(value))))));
	const note = known.length < usage.length ? el("p", {class: "facts"}, `${many(usage.length - known.length, "turn")} of ${number(usage.length)} came without usage.`) : null;
	panel.replaceChildren(legend, stage, readout, note || "", el("details", {class: "table"}, el("summary", null, "As a table"), el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Usage as a table"}, table(bars))));
	paint();
	const watch = new ResizeObserver(paint);
	watch.observe(stage);
	signal.addEventListener("abort", () => watch.disconnect());
}
