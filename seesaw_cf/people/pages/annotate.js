"use strict";
// Pages work without this. It keeps unsent answers on the server, counts words, marks sentences, and knows keys.
(() => {
  const form = document.querySelector("form[data-task]");
  if (!form) return;
  const said = document.getElementById("kept"), fields = [...form.querySelectorAll("fieldset[data-q]")];
  let current = fields[0], timer = 0, dirty = false;

  // What is in the form goes to the server within a second of a change, also while somebody types on, and again until
  // the server has it; the last change also when the page is left.
  const send = async (url, more) => fetch(url, { method: "POST", body: new URLSearchParams(new FormData(form)), ...more });
  async function keep() {
    timer = 0;
    dirty = false;
    try {
      const got = await send(form.dataset.draft);
      const text = await got.text();
      said.textContent = text;
      said.className = got.ok ? "note" : "gone";
      if (!got.ok) { dirty = true; again(5000); }
    } catch {
      dirty = true;
      said.textContent = "Not saved: the server does not answer. Keep this page open; it is tried again.";
      said.className = "gone";
      again(3000);
    }
  }
  function again(after) { if (!timer) timer = setTimeout(keep, after); }
  addEventListener("pagehide", () => { if (dirty) send(form.dataset.draft, { keepalive: true }).catch(() => {}); });
  form.addEventListener("input", () => { dirty = true; again(800); show(); });
  addEventListener("beforeunload", event => { if (dirty && said.className === "gone") event.preventDefault(); });

  form.addEventListener("submit", async event => {
    event.preventDefault();
    clearTimeout(timer);
    timer = 0;
    try {
      const got = await send(form.action);
      if (got.redirected) { dirty = false; location.assign(got.url); return; }
      const text = await got.text(), page = new DOMParser().parseFromString(text, "text/html");
      const why = page.querySelector(".alert");
      said.textContent = why ? why.textContent.trim() : "Not saved.";
      said.className = "gone";
      for (const field of fields) field.classList.toggle("wrong", !!page.querySelector(`fieldset.wrong[data-q="${field.dataset.q}"]`));
      form.querySelector("fieldset.wrong input")?.focus();
    } catch {
      said.textContent = "Not saved: the server does not answer. Keep this page open and press the button again.";
      said.className = "gone";
    }
  });

  const marks = field => [...field.querySelectorAll(".marks input")];
  const pieces = [...document.querySelectorAll(".s")];
  function show() {
    for (const field of fields) field.classList.toggle("now", field === current && pieces.length > 0);
    const on = new Set(current ? marks(current).filter(box => box.checked).map(box => box.value) : []);
    for (const piece of pieces) piece.classList.toggle("on", on.has(piece.dataset.n));
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
  for (const piece of pieces) piece.addEventListener("click", () => { if (getSelection().isCollapsed) mark(piece.dataset.n); });
  // A stretch that was selected with the mouse or with Shift and arrows marks every sentence it touches.
  document.addEventListener("mouseup", () => {
    const range = getSelection();
    if (!range.isCollapsed) pieces.filter(piece => range.containsNode(piece, true)).forEach(piece => mark(piece.dataset.n, true));
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
