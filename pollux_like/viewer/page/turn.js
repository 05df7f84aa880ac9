// One turn as an element: who said what, calls and results folded, every text inert.

import {el, many, number, plain, pretty, time, visible} from "./dom.js";

const FINISHES = {
	length: "cut at the token limit", refusal: "refused", content_filter: "stopped by a content filter", pause: "paused",
	malformed_tool_call: "malformed tool call", other: "ended otherwise", tool_calls: "asked for tools",
};
const ROLES = {user: "User", assistant: "Assistant", tool: "Tool"};

const SENT = 16_000;  // most UTF-16 units of a text that the server cut

// How much of a text is shown, and the button for more of it.
function cut(part, view) {
	const reach = view.reach.get(view.seq);
	let text = reach === undefined ? part.text : part.text.slice(0, reach);
	if (text.length < part.text.length && /[\ud800-\udbff]$/.test(text)) text = text.slice(0, -1);
	const more = text.length < part.text.length || (text.length <= SENT && [...text].length < part.chars);
	return [text, more ? el("button", {type: "button", class: "whole", click: view.whole}, `Show more of ${many(part.chars, "character")}`) : null];
}

// The first line of something that is folded.
function glance(text) {
	const line = text.slice(0, 200).replace(/\s+/g, " ").trim();
	return el("span", {class: "glance", dir: "auto"}, visible(line.length > 120 ? line.slice(0, 120) + "…" : line));
}

function fold(kind, key, title, part, view, badge) {
	const body = el("div", {class: "folded"});
	const fill = () => {
		const [text, more] = cut(part, view);
		body.replaceChildren(el("pre", {tabindex: "0", dir: "auto"}, visible(pretty(text) ?? text, view.words)), more || "");
	};
	const opened = view.open.has(key);
	if (opened) fill();
	return el("details", {
		class: `fold ${kind}`, open: opened,
		toggle: (event) => {
			if (event.target.open) view.open.add(key);
			else view.open.delete(key);
			if (event.target.open && !body.firstChild) fill();
		},
	}, el("summary", null, ...title, badge, glance(part.text)), body);
}

function call(one, key, view) {
	const waits = view.waits.has(one.id);
	return fold("call", key, [el("span", {class: "sign", "aria-hidden": "true"}, "→"), el("code", {title: plain(one.id)}, visible(one.name, view.words))],
		one, view, waits ? el("span", {class: "badge wait"}, "waits for its result") : null);
}

function result(one, key, view) {
	const name = one.name ? el("code", {title: plain(one.id)}, visible(one.name)) : el("code", null, visible(one.id));
	return fold("result", key, [el("span", {class: "sign", "aria-hidden": "true"}, "←"), el("span", null, "result of "), name],
		one, view, one.is_error ? el("span", {class: "badge bad"}, "error") : null);
}

function message(one, at, view) {
	if (one.role === "tool") return result(one, `${view.seq}.${at}`, view);
	const calls = (one.calls || []).map((asked, index) => call(asked, `${view.seq}.${at}.${index}`, view));
	const [text, more] = cut(one, view);
	return el("section", {class: `message ${one.role}${view.refusal === at ? " refusal" : ""}`, "aria-label": ROLES[one.role]},
		el("h3", null, view.refusal === at ? "Assistant · refusal" : ROLES[one.role]),
		text ? el("div", {class: "text", dir: "auto"}, visible(text, view.words)) : null, more, ...calls);
}

const marks = (seq, view) => ({tabindex: "-1", "aria-posinset": seq, "aria-setsize": view.count, "aria-label": `Turn ${seq}`, "data-seq": seq});

const tokens = (usage) => `${number(usage[0])} in · ${number(usage[3])} out`;

// `view`: words to mark, `open` folds by key, ids of calls that wait (`waits`), `count` of turns, `link` to the turn,
// `whole(seq)` to show more of texts that were cut, `reach` of them by turn.
export function drawTurn(turn, view) {
	const refusal = turn.refused ? turn.messages.length - 1 : -1;
	const inner = {...view, seq: turn.seq, refusal, whole: () => view.whole(turn.seq), waits: turn.seq === view.count ? view.waits : new Set()};
	const finish = FINISHES[turn.finish];
	return el("article", {...marks(turn.seq, view), class: "turn"},
		el("header", null,
			el("a", {href: view.link(turn.seq), class: "seq"}, `Turn ${number(turn.seq)}`),
			finish && turn.finish !== "tool_calls" ? el("span", {class: turn.finish === "pause" ? "badge wait" : "badge bad"}, finish) : null,
			el("span", {class: "facts"}, [time(turn.created_at), turn.model ? plain(turn.model) : "", turn.usage ? tokens(turn.usage) : ""].filter(Boolean).join(" · "))),
		...turn.messages.map((one, index) => message(one, index, inner)),
		...turn.notices.map(([kind, text]) => el("p", {class: "notice"}, visible(`${kind}: ${text}`))));
}

export const emptyTurn = (seq, view) =>
	el("article", {...marks(seq, view), class: "turn empty", "aria-busy": "true", "data-empty": "1"},
		el("header", null, el("span", {class: "seq"}, `Turn ${number(seq)}`)));

// An input that has no answer yet.
export function drawInput(input) {
	const brought = [
		input.history ? `${many(input.history, "message")} of history` : "", input.sources ? many(input.sources, "source") : "",
		input.results.length ? many(input.results.length, "tool result") : "",
	].filter(Boolean).join(", ");
	return el("section", {class: "waiting", "aria-label": "Pending input"},
		el("h3", null, "Pending: this input has no answer yet"),
		input.content ? el("div", {class: "text", dir: "auto"}, visible(input.content.text), input.content.chars > input.content.text.length ? " …" : "") : null,
		brought ? el("p", {class: "facts"}, brought) : null);
}
