// SPDX-License-Identifier: Apache-2.0
// The template of a study's HTML page: style, script and frame. html.cpp fills in the {{..}}.
#pragma once

namespace echelon::inline report {

inline constexpr const char* kPageStyle = R"(<style>
:root {
  color-scheme: light dark;
  --fg: #16191d; --quiet: #5c6570; --bg: #fff; --soft: #f5f6f8; --rule: #dfe3e8;
  --yes: #08743a; --no: #8a3b00; --open: #6a5200; --accent: #0072b2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --fg: #e6e9ee; --quiet: #9aa4b0; --bg: #121519; --soft: #1b2027; --rule: #323a44;
    --yes: #63d394; --no: #ffab70; --open: #e3c65b; --accent: #56b4e9;
  }
}
* { box-sizing: border-box; }
body {
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--fg); background: var(--bg);
  max-width: 80rem; margin: 0 auto; padding: 1.1rem 1.5rem 3rem; overflow-wrap: anywhere;
}
.from { color: var(--quiet); font-size: .85rem; margin: 0; display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; }
.from b { color: var(--fg); }
.answer { margin: 1rem 0 1.1rem; }
.answer h1 { font-size: clamp(1.5rem, 1rem + 2vw, 2.2rem); line-height: 1.2; font-weight: 650; margin: 0;
  letter-spacing: -.01em; text-wrap: balance; }
.answer p { font-size: 1.1rem; margin: .35rem 0 0; max-width: 76rem; text-wrap: pretty; }
.yes h1 b { color: var(--yes); } .no h1 b { color: var(--no); } .undecided h1 b { color: var(--open); }
h2 { font-size: 1.15rem; font-weight: 650; margin: 2.6rem 0 .5rem; }
h3 { font-size: .95rem; font-weight: 650; margin: 0 0 .3rem; }
.note { color: var(--quiet); font-size: .85rem; max-width: 62rem; margin: .3rem 0 .7rem; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: .9rem 2.2rem; }
.said { columns: 2 24rem; column-gap: 2.2rem; margin-top: 1.1rem; }
.said section { break-inside: avoid; padding-bottom: .8rem; }
.said ul, .origin ul { margin: 0; padding-left: 1.05rem; }
.said li { margin: .15rem 0; font-size: .92rem; }
.met::marker { color: var(--yes); content: "\2713  "; } .missed::marker { color: var(--no); content: "\2717  "; }

.wide { overflow-x: auto; border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); }
table { overflow-wrap: normal; border-collapse: separate; border-spacing: 0; font-size: .86rem; width: 100%; }
th, td { padding: .34rem .8rem .34rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--rule); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--quiet); font-weight: 500; font-size: .8rem; vertical-align: bottom; }
.r { text-align: right; font-variant-numeric: tabular-nums; }
td.r { white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; }
tr > :first-child { position: sticky; left: 0; background: var(--bg); min-width: 9rem; max-width: 20rem; z-index: 1; }
tr.chosen > * { background: var(--soft); font-weight: 600; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; }
th button:hover { color: var(--fg); text-decoration: underline; }
th[aria-sort=ascending] button::after { content: " \2191"; }
th[aria-sort=descending] button::after { content: " \2193"; }
.wants td { min-width: 6rem; overflow-wrap: anywhere; }
.wants td:nth-child(2) { font-weight: 600; min-width: 9rem; text-wrap: balance; }
.wants td.open { font-weight: 400; color: var(--quiet); }
.wants th:first-child { width: 26%; max-width: none; } .wants th:nth-child(2) { width: 21%; }
.wants th:nth-child(5) { width: 24%; }

figure { margin: 0; position: relative; }
figure svg { width: 100%; height: auto; display: block; touch-action: pan-y; }
.plots { gap: 1.6rem 2.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem .9rem; padding: 0; margin: .3rem 0 0; }
.legend button { font: inherit; font-size: .82rem; color: inherit; background: none; border: 0; padding: .1rem 0;
  cursor: pointer; text-align: left; }
.legend span { font-size: .82rem; }
.legend i { display: inline-block; width: 1.3rem; border-top: 3px solid; vertical-align: middle; margin-right: .4rem; }
.legend i.dashed { border-top-style: dashed; } .legend i.box { width: .8rem; height: .8rem; border: 0; }
.legend button[aria-pressed=false] { opacity: .4; text-decoration: line-through; }
.tip { position: absolute; pointer-events: none; background: var(--fg); color: var(--bg); font-size: .8rem;
  line-height: 1.35; padding: .3rem .55rem; border-radius: 4px; max-width: 16rem; transform: translate(-50%, -115%); }
.bars { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .3rem .9rem; font-size: .86rem;
  align-items: center; }
.bars > div { display: flex; height: 1.15rem; overflow: hidden; }
.bars > div > span { min-width: 0; border-right: 1px solid var(--bg); }
.gains { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(9rem, 1fr) max-content;
  gap: .3rem .9rem;
  font-size: .82rem; align-items: center; }
.gains > div { position: relative; height: 1.2rem;
  background: linear-gradient(var(--rule), var(--rule)) 0 50% / 100% 1px no-repeat; }
.gains i { position: absolute; top: 50%; background: currentColor; transform: translate(0, -50%); height: 3px;
  border-radius: 2px; }
.gains i.dot { width: 9px; height: 9px; border-radius: 50%; transform: translate(-50%, -50%); }
.gains i.one { width: 1px; height: 1.7rem; background: var(--quiet); opacity: .6; }
.gains .shown { color: var(--accent); } .gains .quiet { color: var(--quiet); }
.gains .axis { background: none; color: var(--quiet); }
.gains .axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
summary { cursor: pointer; } details { font-size: .86rem; margin: .8rem 0; }
.origin { font-size: .85rem; color: var(--quiet); }

@media (max-width: 640px) {
  body { padding: .9rem 1rem 2rem; }
  .answer p { font-size: 1rem; }
  tr > :first-child { min-width: 7rem; max-width: 9rem; padding-right: .5rem; }
  .wants thead { display: none; }
  .wants tr { display: block; padding: .45rem 0; border-bottom: 1px solid var(--rule); }
  .wants tr > * { display: block; border: 0; padding: 0; max-width: none; text-align: left; white-space: normal; }
  .wants tr > th:first-child { color: var(--quiet); position: static; width: auto; }
  .wants td:empty, .wants td.none { display: none; }
  .wants td[data-of]::before { content: attr(data-of) " "; color: var(--quiet); font-weight: 400; }
  figure svg text { font-size: 15px; }
  .gains { grid-template-columns: 6.5rem 1fr; } .gains > :nth-child(3n) { display: none; }
  .bars { grid-template-columns: 1fr; gap: .1rem; } .bars > div { margin-bottom: .5rem; }
}
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { --fg: #000; --quiet: #333; --bg: #fff; --soft: #eee; --rule: #999; }
  body { max-width: none; padding: 0; font-size: 11px; orphans: 1; widows: 1; }
  h2, h2 + .note { break-after: avoid; }
  .wide { overflow: visible; }
  table { font-size: 9px; }
  th, td { padding: 1px 5px 1px 0; }
  td.r { white-space: normal; }
  figure, tr, .bars { break-inside: avoid; }
  .bars * { print-color-adjust: exact; }
  .plots { grid-template-columns: 1fr 1fr; }
  details { display: none; }
}
</style>
)";

// The page is complete without the script: tables keep the study's order, and points show their values as titles.
inline constexpr const char* kPageScript = R"(<script>
for (const figure of document.querySelectorAll("figure.plot")) {
  const svg = figure.querySelector("svg"), tip = document.createElement("div");
  const points = [...svg.querySelectorAll("circle")].map(circle => {
    const title = circle.querySelector("title");
    title.remove();
    return { circle, line: circle.parentNode, text: title.textContent,
             x: circle.cx.baseVal.value, y: circle.cy.baseVal.value };
  });
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  for (const button of figure.querySelectorAll("button"))
    button.onclick = () => {
      const show = button.getAttribute("aria-pressed") == "false";
      button.setAttribute("aria-pressed", show);
      for (const line of svg.querySelectorAll(`[data-line="${button.dataset.line}"]`))
        line.style.display = show ? "" : "none";
    };
  svg.onpointermove = event => {
    const m = svg.getScreenCTM(), x = (event.clientX - m.e) / m.a, y = (event.clientY - m.f) / m.d;
    let best = null, least = 40;
    for (const p of points) {
      const far = Math.hypot(p.x - x, p.y - y);
      if (far < least && p.line.style.display != "none") best = p, least = far;
    }
    tip.hidden = !best;
    if (!best) return;
    const box = figure.getBoundingClientRect();
    tip.textContent = best.text;
    tip.style.left = Math.min(Math.max(best.x * m.a + m.e - box.left, 90), box.width - 90) + "px";
    tip.style.top = best.y * m.d + m.f - box.top + "px";
  };
  svg.onpointerleave = () => tip.hidden = true;
}

// The first quantity of a cell, in base units; unknown ones stand last.
const units = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, KiB: 1024, MiB: 1048576, GiB: 1073741824 };
const quantity = text => {
  const m = text.replace(/,/g, "").match(/^[~+]?(-?[\d.]+(?:e[-+]?\d+)?)\s*([A-Za-z]*)(?: (\d+) min)?/);
  return m ? m[1] * (units[m[2]] || 1) + (m[3] || 0) * 60 : NaN;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const next = { ascending: "descending", descending: null }[head.ariaSort];
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      const order = next === undefined ? "ascending" : next;
      if (order) head.setAttribute("aria-sort", order);
      const sign = order == "descending" ? -1 : 1, text = row => row.cells[column].textContent;
      body.append(...(order ? [...rows].sort((a, b) => {
        if (!head.classList.contains("r")) return sign * text(a).localeCompare(text(b));
        const x = quantity(text(a)), y = quantity(text(b));
        return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
      }) : rows));
    };
  });
}
</script>
)";

inline constexpr const char* kPageFrame = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
{{style}}</head><body>
<p class="from"><b>{{name}}</b>{{facts}}</p>
{{answer}}{{wants}}{{said}}{{figures}}{{tables}}{{origin}}{{script}}</body></html>
)";

}  // namespace echelon::inline report
