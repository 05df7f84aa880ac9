// Branches as a tree: each conversation on one axis of turns, pale as far as it shares them with its parent.

import {el, get, many, number, time, told, visible} from "./dom.js";
import {href} from "./route.js";

const DEEPEST = 12;  // steps of indentation

function item(one, depth, {scope, id, most}) {
	const part = (kind, from, to) => {
		const bar = el("span", {class: `piece ${kind}`});
		bar.style.left = `${(100 * from) / most}%`;
		bar.style.width = `${(100 * (to - from)) / most}%`;
		return bar;
	};
	const from = one.parent !== null ? `leaves its parent after turn ${number(one.at)}`
		: one.at ? `shares ${many(one.at, "turn")} with a conversation that is gone` : "";
	const facts = [many(one.turns, "turn"), from, time(one.updated_at)].filter(Boolean).join(" · ");
	const here = one.id === id;
	const words = el("span", {class: "branch"},
		el("span", {class: "name", dir: "auto"}, visible(one.title || one.id)),
		el("span", {class: "facts"}, one.title ? visible(one.id) : "", one.title ? " · " : "", facts));
	words.style.paddingLeft = `${Math.min(depth, DEEPEST) * 1.4}rem`;
	return el("li", {role: "none"},
		el("a", {href: href({scope, id: one.id, turn: here ? null : one.at || null}), tabindex: here ? "0" : "-1", role: "treeitem", "aria-level": String(depth + 1), "aria-current": here ? "true" : null},
			words, el("span", {class: "track", "aria-hidden": "true"}, part("shared", 0, one.at), part("own", one.at, one.turns))));
}

// (conversation, depth) in the order of a tree, without recursion of a depth that forks could drive.
function ordered(branches) {
	const names = new Set(branches.map((one) => one.id));
	const below = new Map();
	for (const one of branches) {
		const parent = names.has(one.parent) ? one.parent : null;
		if (!below.has(parent)) below.set(parent, []);
		below.get(parent).push(one);
	}
	const order = [];
	const stack = (below.get(null) || []).map((one) => [one, 0]).reverse();
	while (stack.length) {
		const [one, depth] = stack.pop();
		order.push([one, depth]);
		stack.push(...(below.get(one.id) || []).map((child) => [child, depth + 1]).reverse());
	}
	return order;
}

function keys(event, items) {
	const at = items.indexOf(document.activeElement);
	const level = (index) => Number(items[index]?.getAttribute("aria-level"));
	const to = {
		ArrowDown: () => at + 1, ArrowUp: () => at - 1, Home: () => 0, End: () => items.length - 1,
		ArrowLeft: () => items.findLastIndex((_, index) => index < at && level(index) < level(at)), ArrowRight: () => (level(at + 1) > level(at) ? at + 1 : at),
	}[event.key];
	if (!to || at < 0) return;
	event.preventDefault();
	event.stopPropagation();
	items[Math.max(0, Math.min(items.length - 1, to()))].focus();
}

export async function showTree(panel, {scope, id, signal}) {
	panel.replaceChildren(el("p", {class: "facts", role: "status"}, "Reading …"));
	try {
		const {branches} = await get("tree", {scope, id}, signal);
		const most = Math.max(1, ...branches.map((one) => one.turns));
		const tree = el("ul", {class: "tree", role: "tree", "aria-label": "Branches"}, ...ordered(branches).map(([one, depth]) => item(one, depth, {scope, id, most})));
		tree.addEventListener("keydown", (event) => keys(event, [...tree.querySelectorAll("[role=treeitem]")]));
		const said = branches.length === 1 ? "This conversation has no forks." : `${many(branches.length, "conversation")} on an axis of ${many(most, "turn")}. Turns of the parent are pale.`;
		panel.replaceChildren(el("p", {class: "facts"}, said), tree);
		tree.querySelector("[aria-current]").scrollIntoView({block: "nearest"});
	} catch (error) {
		told(error, panel);
	}
}
