// A long list of rows of unlike heights, of which only those in sight are on the page.
//
// A row that was never measured counts with the mean height of the first ones. The row at the upper edge is the anchor:
// when heights become known, it stays where it is.

// No browser has a sheet of any height: beyond HIGHEST pixels the middle of it is shorter than what it stands for. A near
// move (wheel, keys) goes as far as it looks, a far one (the bar) to its part of the whole.

const BEYOND = 500;  // pixels above and below the sight that are on the page too
const HIGHEST = 10e6;
const EDGE = 1e5;  // pixels at either end of the sheet that stand for themselves
const MIDDLE = HIGHEST - 2 * EDGE;
const NEAR = 3000;

export class Scroller {
	// `draw(index)`: the element of a row; `has(index)`: whether its data is there; `need(first, last)`: told what is not.
	constructor(box, count, {draw, has, need}) {
		Object.assign(this, {box, draw, has, need, rows: new Map(), guess: 140, guessed: false, ours: -1, y: 0, near: false});
		this.sheet = document.createElement("div");
		this.sheet.className = "sheet";
		this.strip = document.createElement("div");
		this.strip.className = "strip";
		this.sheet.append(this.strip);
		this.box.replaceChildren(this.sheet);
		this.watch = new ResizeObserver(() => this.measure());
		this.watch.observe(box);
		this.listen = () => {
			const by = this.box.scrollTop - this.ours;
			if (Math.abs(by) < 1) return;
			this.near = Math.abs(by) < NEAR;
			this.hold(this.near ? this.y + by : this.inner(this.box.scrollTop));
			this.ask();
		};
		box.addEventListener("scroll", this.listen, {passive: true});
		this.reset(count);
	}

	reset(count) {
		this.count = count;
		this.heights = new Float64Array(count);
		this.sums = new Float64Array(count + 1);
		this.anchor = {index: 0, offset: 0};
		this.clear();
	}

	clear() {
		for (const row of this.rows.values()) this.watch.unobserve(row);
		this.rows.clear();
		this.strip.replaceChildren();
	}

	close() {
		this.watch.disconnect();
		this.box.removeEventListener("scroll", this.listen);
	}

	know(index, height) {
		const change = height - (this.heights[index] || this.guess);
		if (this.heights[index] && Math.abs(change) < 0.5) return;
		this.heights[index] = height;
		for (let at = index + 1; at <= this.count; at += at & -at) this.sums[at] += change;
	}

	top(index) {
		let sum = index * this.guess;
		for (let at = index; at > 0; at -= at & -at) sum += this.sums[at];
		return sum;
	}

	// The row at a height: down the Fenwick tree.
	at(y) {
		let index = 0;
		let rest = y;
		for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.count))); step > 0; step >>= 1) {
			const width = index + step <= this.count ? this.sums[index + step] + step * this.guess : Infinity;
			if (width <= rest) [index, rest] = [index + step, rest - width];
		}
		return Math.max(0, Math.min(index, this.count - 1));
	}

	hold(y) {
		const index = this.at(y);
		this.anchor = {index, offset: y - this.top(index)};
	}

	// Where the anchor wants the upper edge, as far as the ends let it.
	held() {
		const y = this.top(this.anchor.index) + this.anchor.offset;
		return Math.max(0, Math.min(y, this.top(this.count) - this.box.clientHeight));
	}

	// Pixels of the rows that the sheet has no room for; and from a height of the rows to one of the sheet, and back.
	over() {
		return Math.max(0, this.top(this.count) - HIGHEST);
	}

	outer(y) {
		const over = this.over();
		return y < EDGE || !over ? y : y > HIGHEST + over - EDGE ? y - over : EDGE + ((y - EDGE) * MIDDLE) / (MIDDLE + over);
	}

	inner(x) {
		const over = this.over();
		return x < EDGE || !over ? x : x > HIGHEST - EDGE ? x + over : EDGE + ((x - EDGE) * (MIDDLE + over)) / MIDDLE;
	}

	ask() {
		if (!this.asked) this.asked = requestAnimationFrame(() => { this.asked = 0; this.show(); });
	}

	go(index) {
		this.anchor = {index: Math.max(0, Math.min(index, this.count - 1)), offset: 0};
		this.near = false;
		this.show();
	}

	// Bring a row that is in sight only in part into it; another one to the upper edge.
	reveal(index) {
		const height = this.heights[index] || this.guess;
		const top = this.top(index) - this.y;
		if (top >= 0 && top + Math.min(height, this.box.clientHeight) <= this.box.clientHeight) return;
		this.go(index);
	}

	show() {
		if (!this.count) return;
		for (let round = 0; round < 4; round += 1) {
			this.place();
			const y = this.held();
			const first = this.at(Math.max(0, y - BEYOND));
			const last = this.at(y + this.box.clientHeight + BEYOND);
			this.fill(first, last);
			if (!this.learn()) break;
		}
		this.place();
		const keys = [...this.rows.keys()];
		const missing = keys.filter((index) => this.rows.get(index).dataset.empty);
		if (missing.length) this.need(Math.min(...missing), Math.max(...missing));
	}

	fill(first, last) {
		for (const [index, row] of this.rows)
			if (index < first || index > last) {
				this.watch.unobserve(row);
				if (row.contains(document.activeElement)) this.box.focus({preventScroll: true});
				row.remove();
				this.rows.delete(index);
			}
		let before = null;
		for (let index = first; index <= last; index += 1) {
			let row = this.rows.get(index);
			if (!row || (row.dataset.empty && this.has(index))) row = this.put(index, row);
			if (row.parentNode !== this.strip || row.previousSibling !== before) this.strip.insertBefore(row, before ? before.nextSibling : this.strip.firstChild);
			before = row;
		}
	}

	put(index, old) {
		const row = this.draw(index);
		if (old) {
			const focused = old.contains(document.activeElement);
			this.watch.unobserve(old);
			old.replaceWith(row);
			if (focused) row.focus({preventScroll: true});
		}
		this.rows.set(index, row);
		this.watch.observe(row);
		return row;
	}

	// Draw a row anew.
	redraw(index) {
		if (this.rows.has(index)) this.put(index, this.rows.get(index));
		this.measure();
	}

	learn() {
		const known = [...this.rows].filter(([, row]) => !row.dataset.empty).map(([index, row]) => [index, row.getBoundingClientRect().height]);
		if (!this.guessed && known.length) {
			this.guessed = true;
			this.guess = known.reduce((sum, [, height]) => sum + height, 0) / known.length;
			this.heights.fill(0);
			this.sums.fill(0);
		}
		let news = false;
		for (const [index, height] of known)
			if (height > 0 && Math.abs(height - this.heights[index]) >= 0.5) {
				this.know(index, height);
				news = true;
			}
		return news;
	}

	measure() {
		if (this.box.clientHeight && this.learn()) this.show();
		else this.ask();
	}

	place() {
		this.sheet.style.height = `${this.top(this.count) - this.over()}px`;
		this.y = this.held();
		const x = this.outer(this.y);
		const between = (height) => height > EDGE && height < HIGHEST - EDGE;
		const stays = this.near && this.over() && between(x) && between(this.box.scrollTop);
		if (!stays && Math.abs(this.box.scrollTop - x) >= 1) this.box.scrollTop = x;
		this.ours = this.box.scrollTop;
		const first = Math.min(...this.rows.keys());
		const shift = this.over() ? this.ours - this.y : 0;
		if (Number.isFinite(first)) this.strip.style.transform = `translateY(${this.top(first) + shift}px)`;
	}
}
