// The page as a whole: the address, the keys, and what is shown where.

import {el, get, keep, plain, problem, visible} from "./dom.js";
import * as list from "./list.js";
import {href, route} from "./route.js";
import {Talk} from "./talk.js";

const $ = (id) => document.getElementById(id);
const main = $("main");
let store = null;
let shown = {};
let talk = null;

function blank(...parts) {
	if (talk) talk.close();
	talk = null;
	main.replaceChildren(el("div", {class: "blank"}, ...parts));
}

async function playground() {
	document.title = "Playground";
	blank(el("p", {role: "status"}, "Opening the engine of the playground …"));
	try {
		const {path} = await get("playground");
		if (document.body.dataset.view !== "playground") return;
		blank(el("h2", null, "Playground"), el("p", null, "Typed conversations: values with evidence out of a conversation. It reads nothing of the store."),
			el("p", null, el("a", {href: path, class: "go"}, "Open the playground")));
		main.querySelector("a").focus();
	} catch (error) {
		if (document.body.dataset.view === "playground") blank(el("h2", null, "Playground"), problem(error));
	}
}

async function follow() {
	if (!store) return;  // `read` follows
	const wanted = route();
	const scope = wanted.scope ?? $("scope").value;
	if ([...$("scope").options].some((option) => option.value === scope)) $("scope").value = scope;
	const playing = wanted.view === "playground";
	document.body.dataset.view = playing ? "playground" : wanted.id !== null ? "talk" : "list";
	$("to-talks").toggleAttribute("aria-current", !playing);
	$("to-playground").toggleAttribute("aria-current", playing);
	$("to-talks").href = href({scope});
	if (scope !== shown.scope) {
		shown = {scope};
		$("search").value = "";
		list.showList(scope, () => route().id);
	}
	list.mark(wanted.id);
	const same = talk && wanted.id === shown.id && wanted.words === shown.words && !playing;
	Object.assign(shown, {id: wanted.id, words: wanted.words});
	if (playing) return void playground();
	if (same) return void (wanted.turn && talk.go(wanted.turn, true));
	if (wanted.id === null) {
		document.title = "Conversations";
		return void blank(el("p", null, "Choose a conversation, or search with ", el("kbd", null, "/"), "."));
	}
	if (talk) talk.close();
	talk = new Talk(main, scope, wanted.id, wanted.words);
	await talk.open(wanted.turn);
}

async function read() {
	try {
		store = await get("store");
	} catch (error) {
		$("note").hidden = false;
		$("note").replaceChildren(problem(error));
		return;
	}
	$("note").hidden = true;
	$("store").replaceChildren(visible(store.name), store.sealed ? el("span", {class: "badge"}, "sealed") : "");
	const wanted = route().scope ?? shown.scope;
	const names = store.scopes.map((one) => one.name);
	if (wanted && !names.includes(wanted)) names.push(wanted);
	$("scope").replaceChildren(...names.map((name) => el("option", {value: name}, plain(name))));
	const start = names.includes("default") ? "default" : names[0];
	$("scope").value = wanted ?? start ?? "";
	$("scope").parentElement.hidden = names.length < 2;
	shown = {};
	if (talk) talk.close();
	talk = null;
	if (!names.length) {
		document.body.dataset.view = "list";
		$("status").textContent = "The store holds no conversation.";
		return void blank(el("p", null, "The store holds no conversation."));
	}
	await follow();
}

function leave() {
	if (document.activeElement.matches("input")) document.activeElement.blur();
	else if (talk && talk.tab !== "transcript") talk.show("transcript");
	else if (route().id !== null || route().view) {
		const back = route().id;
		location.hash = href({scope: shown.scope});
		(back !== null && [...document.querySelectorAll("#list a[data-id]")].find((link) => link.dataset.id === back) || $("search")).focus();
	}
}

document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
	if (event.key === "Escape") return void leave();
	if (event.target.matches("input, select, textarea")) {
		if (event.target.id === "search" && event.key === "ArrowDown") list.keys(event);
		return;
	}
	const listed = event.target.closest(".side");
	if (listed) list.keys(event);
	if (event.defaultPrevented) return;
	const keys = {"/": () => $("search").select(), "?": () => $("keys").showModal(), r: read};
	if (keys[event.key]) keys[event.key]();
	else if ((listed && ["Home", "End"].includes(event.key)) || !talk || !talk.scroller || !talk.key(event.key)) return;
	event.preventDefault();
});

$("search-form").addEventListener("submit", (event) => {
	event.preventDefault();
	const words = $("search").value.trim();
	document.body.dataset.view = "list";
	if (words) list.showMatches(shown.scope, words);
	else list.showList(shown.scope, () => route().id);
});
$("search").addEventListener("search", () => { if (!$("search").value) list.showList(shown.scope, () => route().id); });
$("scope").addEventListener("change", () => { location.hash = href({scope: $("scope").value}); });
$("help").addEventListener("click", () => $("keys").showModal());
$("reload").addEventListener("click", read);
$("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

// Take the secret of a link out of the address. Whether there was one; the next read tells of a ticket that was spent.
async function entered() {
	const given = new URLSearchParams(location.hash.slice(1));
	const [token, ticket] = [given.get("token"), given.get("ticket")];
	if (!token && !ticket) return false;
	history.replaceState(null, "", "/");
	if (token) keep(token);
	else await get("open", {}, undefined, ticket).then((opened) => keep(opened.token), () => null);
	return true;
}

window.addEventListener("hashchange", async () => void ((await entered()) ? read() : follow()));
entered().then(read);
