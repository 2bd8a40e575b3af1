"use strict";
// The cases behind a mark: the part of the address after # names the list and what of it is shown, so that any view can
// be linked.
for (const block of document.querySelectorAll("script.look-data")) {
  const data = JSON.parse(block.textContent), start = `#${data.id}?`, at = name => document.getElementById(`${data.id}-${name}`);
  const names = data.columns.map(column => column.name), place = Object.fromEntries(names.map((name, i) => [name, i]));
  const rows = data.rows.map(row => row.map((value, i) => data.columns[i].words ? data.columns[i].words[value] : value));
  const heads = at("rows").tHead.rows[0], section = document.getElementById(data.id);
  const number = value => value === null ? "–" : typeof value !== "number" ? value
    : (Number.isInteger(value) ? String(value) : Math.abs(value) >= 0.001 ? value.toPrecision(3) : value.toExponential(1))
      .replace("-", "\u2212");

  // Identifiers are shown by the words of the list that they are chosen from.
  const words = Object.fromEntries(data.choices.map(name =>
    [name, Object.fromEntries([...at(name).options].map(option => [option.value, option.text]))]));

  // What lies below a content warning is opened by the reader alone.
  const place_of = () => section.closest("details:not([open])") ?? section;
  const here = () => location.hash.startsWith(start);
  const state = () => new URLSearchParams(here() ? location.hash.slice(start.length) : "");
  const open = changes => {
    const next = state();
    for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
    history.replaceState(null, "", start + next);
    show();
  };

  function chosen(wanted) {
    const said = (wanted.get("q") || "").toLowerCase();
    return rows.filter(row => data.choices.every(name => {
      const value = wanted.get(name), found = row[place[name in place ? name : `${name}s`]];
      // "women \u00b7 Black" are those of both groups.
      return !value || (Array.isArray(found) ? value === "all" || value.split(" \u00b7 ").every(one => found.includes(one))
        : found === value);
    }) && (!said || data.search.some(name => row[place[name]].toLowerCase().includes(said))));
  }

  function show() {
    const wanted = state(), sort = names.includes(wanted.get("sort")) ? wanted.get("sort") : data.sort;
    // Until a reader sorts, what moved most comes first, up or down; what has no number is last either way.
    const up = wanted.get("up") === "1", by = place[sort], moved = !wanted.has("sort");
    const size = value => moved && typeof value === "number" ? Math.abs(value) : value;
    const found = chosen(wanted).sort((one, other) => {
      const [a, b] = [size(one[by]), size(other[by])];
      return a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b) === up ? -1 : 1;
    });
    for (const name of data.choices) at(name).value = wanted.get(name) || "";
    at("q").value = wanted.get("q") || "";
    const whole = data.counts[JSON.stringify(data.key.map(name => wanted.get(name) || ""))];
    at("found").textContent = (found.length > data.shown ? `${found.length} ${data.noun}, the first ${data.shown} shown`
      : `${found.length} ${data.noun} shown`) +
      (whole === undefined || wanted.get("q") ? "" :
        `; this group has ${whole}` + (whole > found.length ? ", of which these moved most" : ""));
    for (const [i, head] of [...heads.cells].entries())
      head.setAttribute("aria-sort", names[i] !== sort ? "none" : moved ? "other" : up ? "ascending" : "descending");
    at("rows").tBodies[0].replaceChildren(...found.slice(0, data.shown).map(row => {
      const line = document.createElement("tr");
      row.forEach((value, i) => {
        const cell = line.insertCell();
        cell.textContent = Array.isArray(value) ? value.join(", ") : words[names[i]]?.[value] ?? number(value);
        if (!data.columns[i].text) cell.className = "n";
      });
      return line;
    }));
  }

  for (const name of data.choices) at(name).addEventListener("change", event => open({ [name]: event.target.value }));
  at("q").addEventListener("input", event => open({ q: event.target.value }));
  for (const [i, head] of [...heads.cells].entries())
    head.firstElementChild.addEventListener("click", () =>
      open({ sort: names[i], up: state().get("sort") === names[i] && state().get("up") !== "1" ? "1" : "" }));
  addEventListener("hashchange", () => {
    if (!here()) return;
    show();
    place_of().scrollIntoView();
    section.focus({ preventScroll: true });
  });
  show();
  if (here()) place_of().scrollIntoView();
}
