// What is looked at stands behind the # of the address, so that back, forward and bookmarks work.

export const route = () => {
	const given = new URLSearchParams(location.hash.slice(1));
	const turn = Number(given.get("turn"));
	return {
		scope: given.get("scope"), id: given.get("id"), words: given.get("words") || "", view: given.get("view"),
		turn: Number.isSafeInteger(turn) && turn > 0 ? turn : null,
	};
};

export const href = (fields) =>
	"#" + new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== ""));
