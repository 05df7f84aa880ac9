// The one way in which anything comes onto the page: elements by name, and text as text.

const ODD = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}\p{Cs}]|\r(?!\n)/gu;
const MOST_SPANS = 2000;

// An element. `attributes`: set as attributes, handlers (functions) as listeners; null is left out.
export function el(tag, attributes, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (typeof value === "function") made.addEventListener(name, value);
		else if (value === true) made.setAttribute(name, "");
		else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
	}
	made.append(...children.filter((child) => child !== null && child !== undefined));
	return made;
}

export function svg(tag, attributes, ...children) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
	made.append(...children);
	return made;
}

const code = (letter) => "U+" + letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

// What steers text, or hides in it, as its code: for titles and other places that hold no elements.
export const plain = (text) => text.replace(ODD, (letter) => `[${code(letter)}]`);

const folded = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

// A word without end comes in pieces, which are laid out thirty times as fast as the whole.
function put(into, text) {
	let at = 0;
	for (const found of text.matchAll(/\S{1000}/gu)) {
		const end = found.index + found[0].length;
		into.append(text.slice(at, end));
		at = end;
	}
	if (at < text.length) into.append(text.slice(at));
}

function marked(into, text, words, left) {
	if (!words) return void put(into, text);
	const all = folded(text);
	let at = 0;
	for (let found; left.marks > 0 && (found = all.indexOf(words, at)) >= 0; left.marks -= 1) {
		put(into, text.slice(at, found));
		into.append(el("mark", null, text.slice(found, found + words.length)));
		at = found + words.length;
	}
	put(into, text.slice(at));
}

// Text for a place on the page: control and direction characters as their codes, `words` marked.
export function visible(text, words = "") {
	const made = document.createDocumentFragment();
	const wanted = folded(words);
	let at = 0;
	let spans = 0;
	const left = {marks: MOST_SPANS};
	for (const found of text.matchAll(ODD)) {
		if (found.index < at) continue;
		if ((spans += 1) > MOST_SPANS) {
			marked(made, plain(text.slice(at)), wanted, left);
			return made;
		}
		let end = found.index + found[0].length;
		let times = 1;
		while (text.startsWith(found[0], end)) [end, times] = [end + found[0].length, times + 1];
		marked(made, text.slice(at, found.index), wanted, left);
		made.append(el("span", {class: "odd"}, code(found[0]) + (times > 1 ? ` ×${times}` : "")));
		at = end;
	}
	marked(made, text.slice(at), wanted, left);
	return made;
}

// JSON text with line breaks, every token as it came; null for what is no JSON.
export function pretty(text) {
	try {
		JSON.parse(text);
	} catch {
		return null;
	}
	let depth = 0;
	const line = () => "\n" + "  ".repeat(Math.min(depth, 40));
	return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]\s*[\]}]|[\[\]{},:]|\s+|[^\s\[\]{},:"]+/g, (token) => {
		if (!token.trim()) return "";
		if (token.length > 1 && "[{".includes(token[0])) return token[0] + token.at(-1);
		if ("[{".includes(token)) return ((depth += 1), token + line());
		if ("]}".includes(token)) return ((depth -= 1), line() + token);
		return token === "," ? "," + line() : token === ":" ? ": " : token;
	});
}

export const number = (value) => value.toLocaleString("en");

export const time = (seconds) =>
	new Date(seconds * 1000).toLocaleString("sv", {dateStyle: "short", timeStyle: "short"});

export const many = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// The token is kept for all tabs of this origin, port included; where a browser keeps nothing, for this one.
const KEY = "pollux-like-view";
let secret = null;

export function keep(token) {
	secret = token;
	try {
		localStorage.setItem(KEY, token);
	} catch {
		return;  // site data are blocked: a reload needs the link again
	}
}

function kept() {
	try {
		return localStorage.getItem(KEY) ?? secret;
	} catch {
		return secret;
	}
}

// JSON of a read. Throws an Error with `hint`, or an AbortError.
export async function get(name, query = {}, signal = undefined, bearer = kept()) {
	const wanted = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined));
	const lost = (message, hint, status) => Object.assign(new Error(message), {hint, status});
	try {
		const response = await fetch(`/api/${name}?${wanted}`, {signal, cache: "no-store", headers: {authorization: `Bearer ${bearer}`}});
		const body = await response.json();
		if (response.ok) return body;
		throw lost(body.error.message, body.error.hint, response.status);
	} catch (error) {
		if (error.name === "AbortError" || error.status) throw error;
		throw lost("the viewer does not answer", "See whether it still runs");
	}
}

export const problem = (error) => el("p", {class: "problem"}, visible(`${error.message}. ${error.hint || ""}${error.hint ? "." : ""}`));

// Show an error in its place; a read that was given up is none.
export const told = (error, place) => void (error.name === "AbortError" || place.replaceChildren(problem(error)));
