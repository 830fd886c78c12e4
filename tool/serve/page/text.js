// Text and elements. Text from a store becomes text nodes, never markup.

const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\u{e0100}-\u{e01ef}]/gu;

/** Escapes characters that are invisible or reverse the text. */
export function visible(text) {
  return String(text ?? "").replace(hidden, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

/** element("td", {className: "number"}, "text", other) */
export function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return made;
}

const svg = "http://www.w3.org/2000/svg";
export function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(svg, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Milliseconds as people read them: 850ms, 12s, 3m 20s, 5h 2m, 2d 4h. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + "ms";
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m " + (s % 60) + "s";
  if (s < 86400) return Math.floor(s / 3600) + "h " + Math.floor((s % 3600) / 60) + "m";
  return Math.floor(s / 86400) + "d " + Math.floor((s % 86400) / 3600) + "h";
}

/** "web-3:812 backup", as far as it is known. */
export function processName(p) {
  if (!p.host && !p.pid) return p.owner ? "owner " + visible(p.owner) : "another program";
  return visible(p.host ?? "") + (p.pid ? ":" + p.pid : "");
}

/** A text about the holders that died; empty if none did. The store has noticed their death, and passes them over. */
export function deathOf(holders) {
  const dead = holders.filter((h) => h.died).length;
  if (!dead) return "";
  return (holders.length === 1 ? "the holder" : dead + " of " + holders.length + " holders") +
    " died; the next program that asks gets it";
}

export function lockAddress(store, lock) {
  return "#/lock/" + store + "/" + encodeURIComponent(lock);
}

/** An answer of the API as JSON; throws the error that it reports. */
export async function ask(path, options) {
  const answer = await fetch(path, options);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error ?? "HTTP " + answer.status);
  return said;
}

/** A bucket of a rate limit, as cells: its key, the tokens left (also as a bar), its rate, its last use. */
export function bucketCells(b) {
  if (b.error) return [visible(b.rule), visible(b.key.join(" · ")), visible(b.error), "", "", ""];
  const bar = element("meter", { min: 0, max: b.limit, value: b.remaining });
  return [visible(b.rule), visible(b.key.join(" · ")), element("span", {}, bar, " " + b.remaining + " of " + b.limit),
    b.tokens + " each " + duration(b.per_seconds * 1000), duration(b.full_in_seconds * 1000),
    duration(b.unchanged_seconds * 1000) + " ago"];
}
export const bucketHeads = ["Rule", "Key", "Left", "Comes back", "Full in", "Last used"];
