"use strict";
// Pages work without this. It keeps unsent answers on the server, counts words, marks sentences and words, and knows keys.
(() => {
  const form = document.querySelector("form[data-task]");
  if (!form) return;
  const said = document.getElementById("kept"), fields = [...form.querySelectorAll("fieldset[data-q]")];
  let current = fields[0], timer = 0;
  let changes = 0, kept = 0;  // how many there were, and how many the server has

  // What is in the form goes to the server within a second of a change, also while somebody types on, and again until
  // the server has it; the last change also when the page is left.
  const send = async (url, more) => fetch(url, { method: "POST", body: new URLSearchParams(new FormData(form)), ...more });
  async function keep() {
    const sent = changes;
    timer = 0;
    try {
      const got = await send(form.dataset.draft);
      const text = await got.text();
      said.textContent = text;
      said.className = got.ok ? "note" : "gone";
      if (got.ok) kept = Math.max(kept, sent);
      else again(5000);
    } catch {
      said.textContent = "Not saved: the server does not answer. Keep this page open; it is tried again.";
      said.className = "gone";
      again(3000);
    }
  }
  function again(after) { if (!timer) timer = setTimeout(keep, after); }
  addEventListener("pagehide", () => { if (kept < changes) send(form.dataset.draft, { keepalive: true }).catch(() => {}); });
  form.addEventListener("input", event => {
    const field = event.target.closest("fieldset") || current;
    if (field) wrong(field, null);
    changes++;
    again(800);
    show();
  });
  addEventListener("beforeunload", event => { if (kept < changes && said.className === "gone") event.preventDefault(); });

  // What a question still wants stands in it, until something in it changes.
  function wrong(field, why) {
    field.querySelector(":scope > .gone")?.remove();
    field.classList.toggle("wrong", !!why);
    if (why) { field.querySelector("legend").after(why); field.setAttribute("aria-describedby", why.id); }
    else field.removeAttribute("aria-describedby");
  }
  form.addEventListener("submit", async event => {
    event.preventDefault();
    clearTimeout(timer);
    timer = 0;
    try {
      const got = await send(form.action);
      if (got.redirected) { kept = changes; location.assign(got.url); return; }
      const text = await got.text(), page = new DOMParser().parseFromString(text, "text/html");
      const why = page.querySelector(".alert");
      said.textContent = why ? why.textContent.trim() : "Not saved.";
      said.className = "gone";
      for (const field of fields) wrong(field, page.querySelector(`fieldset.wrong[data-q="${field.dataset.q}"] > .gone`));
      form.querySelector("fieldset.wrong :is(input, textarea)")?.focus();
    } catch {
      said.textContent = "Not saved: the server does not answer. Keep this page open and press the button again.";
      said.className = "gone";
    }
  });

  const marks = field => [...field.querySelectorAll(".marks:not(.spans) input")];
  const spans = field => [...field.querySelectorAll(".spans input:checked")];
  const ends = box => box.value.split("-").map(Number);
  const pieces = [...document.querySelectorAll(".s")], words = [...document.querySelectorAll(".w")];
  const from = word => Number(word.dataset.from), to = word => Number(word.dataset.to);
  function show() {
    for (const field of fields) field.classList.toggle("now", field === current && pieces.length > 0);
    const on = new Set(current ? marks(current).filter(box => box.checked).map(box => box.value) : []);
    for (const piece of pieces) piece.classList.toggle("on", on.has(piece.dataset.n));
    const stretches = current && words.length ? spans(current).map(ends) : [];
    for (const word of words) word.classList.toggle("on", stretches.some(([a, b]) => a <= from(word) && to(word) <= b));
    for (const area of form.querySelectorAll("textarea")) {
      const words = (area.value.match(/\S+/g) || []).length;
      document.getElementById(area.id + "-words").textContent = words === 1 ? "1 word" : `${words} words`;
    }
  }
  const changed = () => form.dispatchEvent(new Event("input"));
  function mark(number, value) {
    const box = current && marks(current).find(one => one.value === String(number));
    if (!box) return;
    box.checked = value === undefined ? !box.checked : value;
    changed();
  }
  for (const field of fields) field.addEventListener("focusin", () => { current = field; show(); });
  // A stretch of words for the current claim; what it overlaps becomes part of it, and the same once more takes it away.
  function markWords(chosen) {
    const place = current?.querySelector(".spans");
    if (!place || !chosen.length) return;
    let start = from(chosen[0]), end = to(chosen.at(-1));
    const known = spans(current), same = known.find(box => box.value === `${start}-${end}`);
    for (const box of same ? [same] : known.filter(box => ends(box)[0] < end && start < ends(box)[1])) {
      if (!same) { start = Math.min(start, ends(box)[0]); end = Math.max(end, ends(box)[1]); }
      box.parentNode.remove();
    }
    if (!same) {
      const label = document.createElement("label"), box = document.createElement("input");
      Object.assign(box, { type: "checkbox", name: place.dataset.name, value: `${start}-${end}`, checked: true });
      const said = words.filter(word => start <= from(word) && to(word) <= end).map(word => word.textContent).join(" ");
      label.append(box, ` ${said}`);
      place.append(label);
    }
    changed();
  }
  const selected = () => { const found = getSelection(); return found.isCollapsed ? [] : words.filter(word => found.containsNode(word, true)); };
  let took = false;
  document.addEventListener("mousedown", () => { took = false; });
  document.addEventListener("mouseup", event => {
    const chosen = selected();
    if (!chosen.length || event.detail > 2 || event.target.id === "mark") return;
    took = true;
    if (event.detail === 2) mark(chosen[0].parentNode.dataset.n);  // the first click of the two had marked the sentence
    markWords(chosen);
    getSelection().removeAllRanges();
  });
  for (const piece of pieces) piece.addEventListener("click", () => { if (!took) mark(piece.dataset.n); });
  // Fingers, and the browser's own caret, select without a mouse: then there is a button.
  const button = document.getElementById("mark");
  document.addEventListener("selectionchange", () => { if (button) button.hidden = !selected().length; });
  button?.addEventListener("pointerdown", event => { event.preventDefault(); markWords(selected()); getSelection().removeAllRanges(); });
  button?.addEventListener("click", event => { if (!event.detail) markWords(selected()); });

  // W: words are chosen by keys, from `anchor` to `head`.
  const passage = words[0]?.closest(".passage"), told = document.getElementById("words");
  let anchor = 0, head = 0;
  const chosenWords = () => words.slice(Math.min(anchor, head), Math.max(anchor, head) + 1);
  function choose() {
    const chosen = document.activeElement === passage ? chosenWords() : [];
    for (const word of words) word.classList.toggle("at", chosen.includes(word));
    if (chosen.length) words[head].scrollIntoView({ block: "nearest" });
    told.textContent = chosen.length ? `\u201c${chosen.map(word => word.textContent).join(" ")}\u201d` : "";
  }
  passage?.addEventListener("focus", choose);
  passage?.addEventListener("blur", choose);
  const sentence = step => {
    const near = pieces[pieces.indexOf(words[head].parentNode) + step];
    return near ? words.indexOf(near.querySelector(".w")) : head;
  };
  const moves = { arrowright: () => head + 1, arrowleft: () => head - 1, arrowdown: () => sentence(1), arrowup: () => sentence(-1) };
  passage?.addEventListener("keydown", event => {
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[key]) {
      head = Math.max(0, Math.min(words.length - 1, moves[key]()));
      if (!event.shiftKey) anchor = head;
      choose();
    } else if (key === "enter" || key === " ") { markWords(chosenWords()); anchor = head; choose(); }
    else if (key === "escape") (current.querySelector("input:checked") || current.querySelector("input")).focus();
    else return;
    event.preventDefault();
  });

  function go(step) {
    const next = fields[fields.indexOf(current) + step];
    if (!next) { if (step > 0) form.querySelector("button.go").focus(); return; }
    current = next;
    (next.querySelector("input:checked") || next.querySelector("input, textarea"))?.focus();
    next.scrollIntoView({ block: "nearest" });
    show();
  }
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(textarea|text)$/.test(event.target.type || "")) return;
    const key = event.key.toLowerCase();
    if (key === "j" || key === "k") { go(key === "j" ? 1 : -1); event.preventDefault(); return; }
    if (!current) return;
    if (key === "w" && passage) { passage.focus(); event.preventDefault(); return; }
    const box = [...current.querySelectorAll("input[data-key]")].find(one => one.dataset.key === key);
    if (box) {
      box.checked = box.type === "checkbox" ? !box.checked : true;
      box.focus();
      changed();
      if (box.type === "radio" && (!marks(current).length || box.value === "neutral")) go(1);
      event.preventDefault();
    } else if (/^[1-9]$/.test(key) && pieces.length) { mark(key); event.preventDefault(); }
  });
  show();
})();
