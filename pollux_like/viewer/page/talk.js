// One conversation: its head, its transcript by pages, and the tabs beside it.

import {el, get, many, number, plain, pretty, problem, time, told, visible} from "./dom.js";
import {showUsage} from "./plot.js";
import {href} from "./route.js";
import {Scroller} from "./scroll.js";
import {showTree} from "./tree.js";
import {drawInput, drawTurn, emptyTurn} from "./turn.js";

const CHUNK = 40;
const KEPT = 1200;  // turns that stay in memory, or fewer where they have
const HEAVY = 40e6;  // more characters
const STEP = 5e5;  // characters of a long text that come onto the page at a time
const TABS = [["transcript", "Transcript"], ["usage", "Usage"], ["branches", "Branches"], ["details", "Details"]];

const weight = (turn) => turn.messages.reduce((sum, one) => sum + one.text.length + (one.calls || []).reduce((all, call) => all + call.text.length, 0), 0);

export class Talk {
	constructor(main, scope, id, words) {
		Object.assign(this, {main, scope, id, words, turns: new Map(), places: null, place: -1, current: 1, tab: "transcript", wanted: null});
		this.ending = new AbortController();
		this.view = {words, open: new Set(), waits: new Set(), reach: new Map(), count: 0, link: (seq) => this.link({turn: seq}), whole: (seq) => this.whole(seq)};
	}

	link(fields) {
		return href({scope: this.scope, id: this.id, ...fields});
	}

	close() {
		this.ending.abort();
		if (this.scroller) this.scroller.close();
	}

	async open(turn) {
		this.wanted = turn;
		try {
			await this.overview();
		} catch (error) {
			if (error.name !== "AbortError") this.main.replaceChildren(el("div", {class: "blank"}, problem(error), el("a", {href: href({scope: this.scope})}, "Back to the list")));
			return false;
		}
		this.build();
		this.scroller = new Scroller(this.box, this.seen.turns, {
			draw: (index) => this.draw(index + 1), has: (index) => this.turns.has(index + 1), need: (first, last) => this.need(first + 1, last + 1),
		});
		const focus = this.wanted !== null;
		this.go(this.wanted ?? 1, focus);
		if (this.words) this.find(this.words, focus ? this.wanted : null);
		return true;
	}

	async overview() {
		this.seen = await get("conversation", {scope: this.scope, id: this.id}, this.ending.signal);
		this.view.count = this.seen.turns;
		this.view.waits = new Set(this.seen.open_calls.map((call) => call.id));
	}

	build() {
		const seen = this.seen;
		document.title = plain(seen.title || seen.id);
		this.box = el("div", {class: "scroll", role: "feed", tabindex: "0", "aria-label": `Transcript, ${many(seen.turns, "turn")}`});
		const go = el("input", {id: "go", type: "number", min: "1", max: String(seen.turns), "aria-label": "Go to turn", placeholder: "Turn"});
		const find = el("input", {id: "find", type: "search", "aria-label": "Find in this conversation", placeholder: "Find  f", value: this.words, maxlength: "4096", autocomplete: "off", spellcheck: "false"});
		this.found = el("span", {class: "facts", role: "status", "aria-live": "polite"});
		const tools = el("div", {class: "tools"},
			el("form", {submit: (event) => { event.preventDefault(); if (go.value) this.go(Number(go.value), true); }}, go, el("span", {class: "facts"}, `of ${number(seen.turns)}`)),
			el("form", {submit: (event) => { event.preventDefault(); this.find(find.value.trim()); }}, find),
			el("button", {type: "button", title: "Place before (p)", "aria-label": "Place before", click: () => this.step(-1)}, "↑"),
			el("button", {type: "button", title: "Next place (n)", "aria-label": "Next place", click: () => this.step(1)}, "↓"), this.found);
		this.panels = Object.fromEntries(TABS.map(([name, title]) => [name, el("div", {class: `panel ${name}`, id: `panel-${name}`, role: "tabpanel", "aria-label": title, hidden: name !== "transcript"})]));
		this.tabs = el("div", {class: "tabs", role: "tablist", "aria-label": "Parts", keydown: (event) => this.tabKey(event)}, ...TABS.map(([name, title]) =>
			el("button", {type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": String(name === "transcript"), tabindex: name === "transcript" ? "0" : "-1", click: () => this.show(name)}, title)));
		this.panels.transcript.append(tools, this.box, seen.input ? drawInput(seen.input) : "");
		if (!seen.turns) this.panels.transcript.insertBefore(el("p", {class: "blank"}, "No turn is complete yet."), this.box);
		this.box.hidden = !seen.turns;
		const badges = [
			seen.input ? el("span", {class: "badge wait"}, "pending input") : null,
			seen.open_calls.length ? el("span", {class: "badge wait"}, `${many(seen.open_calls.length, "open tool call")}`) : null,
		];
		this.main.replaceChildren(
			el("header", {class: "head"},
				el("a", {class: "back", href: href({scope: this.scope}), "aria-label": "Back to the list"}, "←"),
				el("h2", {dir: "auto"}, visible(seen.title || seen.id)),
				el("p", {class: "facts"}, seen.title ? visible(seen.id) : "", seen.title ? " · " : "", `${many(seen.turns, "turn")} · changed ${time(seen.updated_at)} `, ...badges.filter(Boolean))),
			this.tabs, ...Object.values(this.panels));
	}

	draw(seq) {
		const turn = this.turns.get(seq);
		const row = turn ? drawTurn(turn, this.view) : emptyTurn(seq, this.view);
		if (seq === this.current) row.classList.add("current");
		row.addEventListener("focusin", () => this.mark(seq));
		return row;
	}

	need(first, last) {
		if (this.asked && this.asked[0] <= first && last <= this.asked[1]) return;
		clearTimeout(this.waiting);
		this.waiting = setTimeout(() => this.fetch(first, last), this.turns.size ? 50 : 0);
	}

	async fetch(first, last) {
		if (this.fetching) this.fetching.abort();
		const fetching = (this.fetching = new AbortController());
		const from = Math.max(1, first - 4);
		const to = Math.min(this.seen.turns, Math.max(last, from + CHUNK - 1), from + 99);
		this.asked = [from, to];
		try {
			const page = await get("turns", {scope: this.scope, id: this.id, first: from, last: to}, AbortSignal.any([this.ending.signal, fetching.signal]));
			this.asked = null;
			if (page.version !== this.seen.version) return void (await this.changed());
			for (const turn of page.turns) {
				this.turns.delete(turn.seq);
				this.turns.set(turn.seq, turn);
			}
			let left = HEAVY;
			for (const [at, turn] of [...this.turns.values()].reverse().entries())
				if (at >= KEPT || (left -= weight(turn)) < 0) this.turns.delete(turn.seq);
			if (page.turns.length) this.scroller.show();
		} catch (error) {
			if (fetching === this.fetching) this.asked = null;
			told(error, this.found);
		}
	}

	// Another worker changed it: what was read before may not stand any more.
	async changed() {
		const at = this.current;
		await this.overview();
		this.turns.clear();
		this.view.reach.clear();
		const tab = this.tab;
		const focused = this.box.contains(document.activeElement);
		this.build();
		this.scroller.close();
		this.scroller = new Scroller(this.box, this.seen.turns, this.scroller);
		this.show(tab);
		this.go(Math.min(at, this.seen.turns), focused);
	}

	async whole(seq) {
		this.view.reach.set(seq, (this.view.reach.get(seq) ?? 0) + STEP);
		if (this.turns.get(seq)?.whole) return void this.scroller.redraw(seq - 1);
		try {
			const page = await get("turns", {scope: this.scope, id: this.id, first: seq, last: seq, whole: 1}, this.ending.signal);
			if (page.version !== this.seen.version) return void (await this.changed());
			this.turns.set(seq, {...page.turns[0], whole: true});
			this.scroller.redraw(seq - 1);
		} catch (error) {
			told(error, this.found);
		}
	}

	mark(seq) {
		this.current = seq;
		for (const row of this.box.querySelectorAll(".turn")) row.classList.toggle("current", Number(row.dataset.seq) === seq);
	}

	go(seq, focus = false) {
		this.wanted = seq;
		if (!this.scroller || !this.seen.turns) return;
		const to = Math.max(1, Math.min(this.seen.turns, Math.floor(seq)));
		if (this.tab !== "transcript") this.show("transcript");
		this.scroller.go(to - 1);
		this.mark(to);
		if (focus) this.box.querySelector(`[data-seq="${to}"]`)?.focus({preventScroll: true});
	}

	move(step) {
		const to = Math.max(1, Math.min(this.seen.turns, this.current + step));
		this.scroller.reveal(to - 1);
		this.mark(to);
		this.box.querySelector(`[data-seq="${to}"]`)?.focus({preventScroll: true});
	}

	fold() {
		const row = this.box.querySelector(`[data-seq="${this.current}"]`);
		const folds = [...(row?.querySelectorAll("details.fold") || [])];
		const open = folds.some((one) => !one.open);
		for (const one of folds) one.open = open;
	}

	async find(words, near = null) {
		this.view.words = this.words = words;
		this.places = null;
		for (const seq of this.scroller.rows.keys()) this.scroller.redraw(seq);
		if (!words) return void (this.found.textContent = "");
		this.found.textContent = "Finding …";
		try {
			const found = await get("find", {scope: this.scope, id: this.id, words}, this.ending.signal);
			this.places = [...new Set(found.places.map((one) => one.seq))];
			this.more = found.more;
			const from = near ?? this.current;
			this.place = Math.max(0, this.places.findIndex((seq) => seq >= from)) - 1;
			if (!this.places.length) this.found.textContent = "not found";
			else this.step(1);
		} catch (error) {
			told(error, this.found);
		}
	}

	step(by) {
		if (!this.places?.length) return;
		this.place = (this.place + by + this.places.length) % this.places.length;
		this.found.textContent = `${number(this.place + 1)} of ${many(this.places.length, "turn")}${this.more ? " and more" : ""}`;
		this.go(this.places[this.place]);
	}

	show(name) {
		this.tab = name;
		for (const tab of this.tabs.children) {
			const chosen = tab.id === `tab-${name}`;
			tab.setAttribute("aria-selected", String(chosen));
			tab.tabIndex = chosen ? 0 : -1;
		}
		for (const [key, panel] of Object.entries(this.panels)) panel.hidden = key !== name;
		const panel = this.panels[name];
		const given = {scope: this.scope, id: this.id, count: this.seen.turns, signal: this.ending.signal, go: (seq) => this.go(seq, true)};
		if (name === "transcript") this.scroller.show();
		else if (name === "usage") showUsage(panel, given);
		else if (name === "branches") showTree(panel, given);
		else this.details(panel);
	}

	tabKey(event) {
		const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
		if (!step) return;
		const at = TABS.findIndex(([name]) => name === this.tab);
		this.show(TABS[(at + step + TABS.length) % TABS.length][0]);
		this.tabs.children[(at + step + TABS.length) % TABS.length].focus();
	}

	details(panel) {
		const seen = this.seen;
		const rows = [
			["Id", visible(seen.id)], ["Title", seen.title ? visible(seen.title) : "none"], ["Scope", visible(this.scope)],
			["Turns", number(seen.turns)], ["Revision", number(seen.revision)], ["Time zone", Intl.DateTimeFormat().resolvedOptions().timeZone], ["Created", time(seen.created_at)], ["Changed", time(seen.updated_at)],
			["Open tool calls", seen.open_calls.length ? visible(seen.open_calls.map((call) => `${call.name} (${call.id})`).join(", ")) : "none"],
		];
		panel.replaceChildren(
			el("dl", {class: "pairs"}, ...rows.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", {dir: "auto"}, value)))),
			el("h3", null, "Metadata"), seen.metadata ? el("pre", {dir: "auto", tabindex: "0"}, visible(pretty(seen.metadata) ?? seen.metadata)) : el("p", {class: "facts"}, "none"));
	}

	// Whether the key was one of the conversation's.
	key(key) {
		const tab = TABS[Number(key) - 1];
		const keys = {
			j: () => this.move(1), k: () => this.move(-1), o: () => this.fold(), n: () => this.step(1), p: () => this.step(-1),
			Home: () => this.go(1, true), End: () => this.go(this.seen.turns, true),
			f: () => { this.show("transcript"); document.getElementById("find").select(); },
			g: () => { this.show("transcript"); document.getElementById("go").select(); },
		};
		if (tab) {
			this.show(tab[0]);
			this.tabs.children[Number(key) - 1].focus();
		} else if (keys[key]) keys[key]();
		else return false;
		return true;
	}
}
