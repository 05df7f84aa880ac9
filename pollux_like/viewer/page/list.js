// The list of conversations, and what a search found.

import {el, get, many, plain, problem, time, told, visible} from "./dom.js";
import {href} from "./route.js";

const $ = (id) => document.getElementById(id);
let reading = null;

function entry(scope, one, current) {
	const name = one.title || one.id;
	return el("li", null,
		el("a", {class: "entry", href: href({scope, id: one.id}), "aria-current": one.id === current ? "page" : null, "data-id": one.id, title: plain(one.id)},
			el("span", {class: "name", dir: "auto"}, visible(name)),
			el("span", {class: "facts"}, `${many(one.turns, "turn")} · ${time(one.updated_at)}`,
				one.pending ? el("span", {class: "badge wait"}, "pending") : null)));
}

function match(scope, one, words) {
	return el("li", null,
		el("a", {class: "entry", href: href({scope, id: one.id, turn: one.seq, words})},
			el("span", {class: "facts"}, visible(one.id), ` · turn ${one.seq} · ${one.role}`),
			el("span", {class: "excerpt", dir: "auto"}, visible(one.before), el("mark", null, visible(one.words)), visible(one.after))));
}

function fresh() {
	if (reading) reading.abort();
	reading = new AbortController();
	return reading.signal;
}

// The newest conversations of a scope; more of them come with the button at the end.
export async function showList(scope, current) {
	const signal = fresh();
	const list = el("ul", {class: "entries"});
	const more = el("button", {type: "button", class: "more", click: () => next()}, "Older conversations");
	let before = null;
	let count = 0;
	async function next() {
		more.disabled = true;
		try {
			const page = await get("conversations", {scope, before}, signal);
			const added = page.conversations.map((one) => entry(scope, one, current()));
			list.append(...added);
			count += added.length;
			before = page.before;
			more.hidden = before === null;
			$("status").textContent = count ? `${many(count, "conversation")}${before === null ? "" : ", and older ones"}` : "There is no conversation in this scope.";
			return added[0];
		} catch (error) {
			told(error, $("status"));
		} finally {
			more.disabled = false;
		}
	}
	list.addEventListener("older", async () => {
		const first = more.hidden || more.disabled ? null : await next();
		if (first) first.firstChild.focus();
	});
	if (!(await next()) && signal.aborted) return;
	$("list").replaceChildren(list, more);
}

export async function showMatches(scope, words) {
	const signal = fresh();
	$("status").textContent = "Searching …";
	try {
		const found = await get("search", {scope, words}, signal);
		const talks = found.conversations.map((one) => entry(scope, one, null));
		const said = found.messages.map((one) => match(scope, one, words));
		const parts = [];
		if (talks.length) parts.push(el("h2", null, "Conversations"), el("ul", {class: "entries"}, ...talks));
		if (said.length) parts.push(el("h2", null, "Messages"), el("ul", {class: "entries"}, ...said));
		if (found.problem) parts.push(problem({message: `Titles and ids were searched: ${found.problem.message}`, hint: ""}));
		$("list").replaceChildren(...parts);
		$("status").textContent = `${many(talks.length, "conversation")}, ${many(said.length, "message")}${found.more ? ": the first ones" : ""}`;
	} catch (error) {
		told(error, $("status"));
	}
}

export function mark(id) {
	for (const link of document.querySelectorAll("#list a[data-id]"))
		if (link.dataset.id === id) link.setAttribute("aria-current", "page");
		else link.removeAttribute("aria-current");
}

// Arrows move between the entries.
export function keys(event) {
	const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
	if (!step && event.key !== "Home" && event.key !== "End") return;
	const links = [...document.querySelectorAll("#list a")];
	const at = links.indexOf(document.activeElement);
	if (!step && at < 0) return;
	event.preventDefault();
	const to = event.key === "Home" ? 0 : event.key === "End" ? links.length - 1 : at + step;
	if (links[to]) links[to].focus();
	else if (to < 0) $("search").focus();
	else document.querySelector("#list ul")?.dispatchEvent(new Event("older"));
}
