"""The graph as one HTML file: search, filter by identity and score. Nothing is loaded from anywhere.

Model text travels as JSON that cannot end its script element, and is put into the page as text, never as HTML.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from seesaw_cf.io.files import write_text
from seesaw_cf.stereotypes.folder import Crawl

__all__ = ["export_page"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>Stereotype graph</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 1.5em; max-width: 75em }
.warning { background: #fff3cd; padding: .6em 1em; border-left: .4em solid #d39e00 }
fieldset { border: 0; padding: .5em 0; display: flex; gap: 1em; flex-wrap: wrap; align-items: end }
label { display: block; font-size: .85em } svg { width: 100%; border: 1px solid #ddd }
polyline { fill: none }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid #ddd; padding: .25em .5em; text-align: left }
.positive { stroke: #009e73 } .negative { stroke: #d55e00 } .neutral, .other, .none { stroke: #999 }
text { font-size: 11px } text.identity { font-weight: bold; font-size: 13px }
</style></head><body>
<h1>Stereotype graph</h1>
<p class="warning"><strong>Warning:</strong> this page shows what a language model wrote about groups of people. It is
offensive in places and true of nobody.</p>
<p id="about"></p>
<fieldset>
<div><label for="search">Search</label><input id="search" type="search"></div>
<div><label for="identity">Identity</label><select id="identity"></select></div>
<div><label for="regard">Regard</label><select id="regard"></select></div>
<div><label for="attack">Attack score at least <output id="least">0</output></label>
<input id="attack" type="range" min="0" max="1" step="0.01" value="0"></div>
</fieldset>
<p id="count" role="status"></p>
<svg id="picture" role="img" aria-label="The first 60 triples as a graph"></svg>
<table><thead><tr><th>Identity</th><th>Predicate</th><th>Object</th><th>Regard</th><th>masked</th><th>Attack</th>
<th>masked</th><th>Strategy</th></tr></thead><tbody id="rows"></tbody></table>
<script type="application/json" id="data">__DATA__</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent), at = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg", SHOWN = 500, DRAWN = 60;
at("about").textContent = data.about;
for (const [id, values] of [["identity", data.identities], ["regard", data.regards]])
  for (const value of ["", ...values]) {
    const option = document.createElement("option");
    option.value = value; option.textContent = value || "all"; at(id).append(option);
  }
const score = value => value === null ? "" : value.toFixed(2);
function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const cut = (text, most) => text.length > most ? text.slice(0, most - 1).trimEnd() + "\\u2026" : text;
function label(attributes, whole, most) {
  const made = element("text", attributes, cut(whole, most));
  made.append(element("title", {}, whole));
  return made;
}
function draw(found) {
  // A line for each triple, so that no label lies on another; the whole text is in the tooltip and in the table.
  const picture = at("picture"); picture.replaceChildren();
  const drawn = found.slice(0, DRAWN), groups = new Map(), STEP = 17;
  for (const t of drawn) groups.set(t[0], [...(groups.get(t[0]) || []), t]);
  picture.setAttribute("viewBox", "0 0 1000 " + (drawn.length * STEP + 20));
  let row = 0;
  for (const [name, triples] of groups) {
    const middle = (row + (triples.length - 1) / 2) * STEP + 16;
    for (const t of triples) {
      const y = row++ * STEP + 16;
      picture.append(element("polyline", {points: "235," + middle + " 330," + y + " 370," + y, class: t[3] || "none"}));
      picture.append(label({x: 376, y: y + 4}, t[1] + " \\u2192 " + t[2], 95));
    }
    picture.append(label({x: 228, y: middle + 4, class: "identity", "text-anchor": "end"}, name, 30));
  }
}
function show() {
  const words = at("search").value.toLowerCase(), who = at("identity").value, regard = at("regard").value;
  const least = Number(at("attack").value);
  at("least").textContent = least.toFixed(2);
  const found = data.triples.filter(t => (!who || t[0] === who) && (!regard || t[3] === regard) &&
    (least === 0 || (t[5] !== null && t[5] >= least)) &&
    (t[0] + " " + t[1] + " " + t[2]).toLowerCase().includes(words));
  at("count").textContent = found.length + " of " + data.triples.length + " triples" +
    (found.length > SHOWN ? "; the first " + SHOWN + " are shown" : "");
  at("rows").replaceChildren(...found.slice(0, SHOWN).map(t => {
    const row = document.createElement("tr");
    for (const cell of [t[0], t[1], t[2], t[3] || "", t[4] || "", score(t[5]), score(t[6]), t[7]]) {
      const made = document.createElement("td"); made.textContent = cell; row.append(made);
    }
    return row;
  }));
  draw(found);
}
for (const id of ["search", "identity", "regard", "attack"]) at(id).addEventListener("input", show);
show();
</script></body></html>
"""


def export_page(crawl: Crawl, file: Path) -> None:
    """Writes the page.

    Raises:
        StorageError: The disk is full.
    """
    rows = crawl.triples if crawl.scores is None else crawl.scored()
    columns = ("identity", "predicate", "object", "regard", "regard_masked", "attack", "attack_masked", "strategy")
    triples = [[_plain(row.get(name)) for name in columns] for row in rows.to_dict("records")]
    data = {
        "about": f"{crawl.name}; {len(triples)} triples. Masked: the same sentence about \u201cSome people\u201d.",
        "identities": sorted(rows["identity"].unique()),
        "regards": sorted({str(row[3]) for row in triples if row[3]}),
        "triples": triples,
    }
    text = json.dumps(data, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    write_text(file, _PAGE.replace("__DATA__", text))


def _plain(value: str | float | None) -> str | float | None:
    return None if pd.isna(value) else value
