"""What an evaluation's page adds to the look and the behaviour of the other pages: plain CSS and JavaScript."""

STYLE = """
:root { --good: #1a7f37; --care: #9a6700; --poor: #b3261e; --none: #57606a; --box: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --good: #4ac26b; --care: #e3b341; --poor: #ff8a80; --none: #9da7b3; --box: #1c2128; }
}
h2 { border-top: 2px solid var(--rule); padding-top: 1.25rem; font-size: 1.35rem; }
h3 { margin: 1.75rem 0 .25rem; font-size: 1.05rem; }
h4 { margin: 1rem 0 .35rem; font-size: .925rem; overflow-wrap: anywhere; }
.warning { border: 2px solid var(--poor); border-radius: .4rem; padding: .75rem 1rem; margin: 0 0 1.25rem; }
.warning p { margin: 0; max-width: none; overflow-wrap: anywhere; }
.warning p + p { margin-top: .5rem; }
.verdicts { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1rem; }
.verdict { background: var(--box); border-radius: .5rem; padding: 1rem 1.1rem; min-width: 0; }
.verdict h3 { margin: 0 0 .5rem; font-size: 1.1rem; }
.verdict h4 { margin: .9rem 0 .3rem; }
.verdict p { font-size: .875rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
.verdict p:last-child { margin-bottom: 0; }
.grade { display: inline-block; border: 1.5px solid; border-radius: 1rem; padding: .05rem .7rem; font-weight: 650; }
.grade.good { color: var(--good); } .grade.care { color: var(--care); }
.grade.few { color: var(--care); border-style: dashed; }
.grade.poor { color: var(--poor); } .grade.none { color: var(--none); }
.verdict .said { font-size: 1rem; font-weight: 600; }
.verdicts.several { grid-template-columns: minmax(0, 1fr); }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 0 2rem; }
.short { font-size: 1.1rem; font-weight: 600; max-width: none; overflow-wrap: anywhere; }
.numbers { display: grid; gap: .5rem 2.5rem; }
.numbers { grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least, 24rem)), 1fr)); }
.numbers > div { min-width: 0; } .numbers td, mark { white-space: nowrap; } .numbers table { font-size: .85rem; }
.numbers .absent { min-width: 0; text-align: right; }
 .numbers table, .scores { width: 100%; } .soft { color: var(--soft); }
.numbers .note { margin: 0 0 .35rem; } .numbers th:first-child { min-width: 5rem; }
.numbers td, .numbers thead th + th { padding-left: .5rem; } .numbers tr > :last-child { padding-right: 0; }
.scores th:first-child { width: 40%; }
.scores td, .scores thead th + th { padding-left: .75rem; }
.matrix th:first-child { min-width: 7.5rem; }
.scores tbody th { font-weight: 600; }
.chart td { min-width: 3rem; }
.chart th:first-child { position: sticky; left: 0; background: var(--paper); white-space: nowrap; }
.what { display: block; font-weight: 400; color: var(--soft); font-size: .85em; }
.interval { display: block; color: var(--soft); font-size: .85em; white-space: nowrap; }
.absent { color: var(--soft); font-size: .85em; text-align: left; min-width: 9rem; max-width: 16rem; }
.reason { display: block; overflow-wrap: anywhere; }
th button { all: unset; cursor: pointer; overflow-wrap: break-word; }
th button:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
th button::after { content: " \\2195"; color: var(--soft); font-weight: 400; }
th[aria-sort=ascending] button::after { content: " \\2191"; color: var(--ink); }
th[aria-sort=descending] button::after { content: " \\2193"; color: var(--ink); }
.chooser { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; margin: 0 0 .75rem; }
.chooser label { display: flex; gap: .5rem; align-items: center; min-width: 0; }
.chooser select { font: inherit; max-width: 15rem; padding: .2rem .4rem; }
.thirds { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1rem; }
[hidden] { display: none !important; }
figcaption { font-weight: 600; font-size: .925rem; overflow-wrap: anywhere; }
.canvas { min-height: 8rem; }
details { margin: .5rem 0; } summary { cursor: pointer; }
.plain li { margin-bottom: .35rem; max-width: 62rem; overflow-wrap: anywhere; }
.sign { width: 100%; max-width: 44rem; } .sign th { width: 12rem; } .sign td { height: 2.6rem; }
@media (max-width: 900px) { .verdicts, .thirds { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 700px) {
  .scores th:first-child { width: auto; min-width: 9.5rem; }
  .scores table, .scores { font-size: .78rem; }
  th, td { padding-right: .6rem; }
}
@page { margin: 12mm; }
@media print {
  body { font-size: .84rem; }
  .verdict p, .warning p { break-after: auto; } h4, summary, figcaption { break-after: avoid; }
  :root { --good: #14602a; --care: #7a5200; --poor: #9c1c15; --none: #444; --box: #fff; }
  .verdict { border: 1px solid var(--rule); break-inside: avoid; }
  /* Whatever is wider than the paper would make the browser shrink every page, so tables wrap instead. */
  .wide { overflow: visible; } table { font-size: .62rem; }
  .wide table { width: 100%; } .wide th, .wide td { overflow-wrap: anywhere; padding: .25rem .3rem .25rem 0; }
  .wide .part, .wide .interval { white-space: normal; } .wide th, .wide td { min-width: 0 !important; }
  .scores th:first-child { width: 45%; } .matrix th:first-child { width: 14%; }
  .chooser, th button::after { display: none; }
  .gallery [hidden] { display: block !important; }
  .verdicts { display: block; } .verdict { margin-bottom: .75rem; padding: .6rem .9rem; }
  .thirds { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .numbers { gap: .25rem 1.25rem; grid-template-columns: minmax(0, 1fr); }
  .numbers.few { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .numbers > div, .numbers table { break-inside: avoid; } .numbers table { font-size: .58rem; }
  .numbers .wide td, .numbers .wide thead th, .numbers .wide .part, .numbers mark { white-space: nowrap; }
  .numbers .wide td, .numbers .wide mark { overflow-wrap: normal; padding-left: .3rem; padding-right: 0; }
  .numbers .wide tbody th { overflow-wrap: break-word; }
  .numbers h4 { margin: .5rem 0 0; } .numbers .note { font-size: .62rem; line-height: 1.3; }
  .warning, .sign { break-inside: avoid; }
}
"""

SCRIPT = """
const place = (cell) => cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
const compare = (a, b) => typeof a === 'string' ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
document.querySelectorAll('table.sortable').forEach(table => {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute('aria-sort', 'none');
    button.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      heads.forEach(other => other.setAttribute('aria-sort', 'none'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = row => column ? place(row.cells[column]) : row.cells[0].textContent.trim();
      const rows = [...body.rows].map(row => [key(row), row]);
      const known = rows.filter(([value]) => value !== null).sort(([a], [b]) => compare(a, b) * (up ? 1 : -1));
      body.append(...known.map(([, row]) => row), ...rows.filter(([value]) => value === null).map(([, row]) => row));
    });
  });
});

const drawings = [...document.querySelectorAll('figure[data-picture]')];
const draw = figure => {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = 'yes';
  const content = JSON.parse(document.getElementById(figure.dataset.picture).textContent);
  const canvas = figure.querySelector('.canvas');
  canvas.style.minHeight = '0';
  Plotly.newPlot(canvas, content.data, content.layout, {responsive: true, displayModeBar: false});
};
const near = new IntersectionObserver(seen => seen.forEach(entry => {
  if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
}), {rootMargin: '300px'});
document.querySelectorAll('.gallery').forEach(gallery => {
  const selects = [...gallery.querySelectorAll('select')], figures = [...gallery.querySelectorAll('figure')];
  const choose = () => figures.forEach(figure => {
    figure.hidden = selects.some(select => figure.dataset[select.name] !== select.value);
  });
  const redraw = figure => figure.dataset.drawn ? Plotly.Plots.resize(figure.querySelector('.canvas')) : draw(figure);
  gallery.addEventListener('change', () => { choose(); figures.filter(figure => !figure.hidden).forEach(redraw); });
  choose();
});
drawings.filter(figure => !figure.hidden).forEach(figure => near.observe(figure));
// One after the other while the reader is still at the top, so that nothing has to be waited for further down.
const rest = () => {
  const next = drawings.find(figure => !figure.dataset.drawn && !figure.hidden && figure.offsetParent);
  if (next) { draw(next); setTimeout(rest, 30); }
};
addEventListener('load', () => setTimeout(rest, 300));
// Paper has no menus: everything that could be chosen or opened is printed, and drawn for the paper's width, at once.
let closed = [];
const paper = figure => figure.closest('.thirds') ? 214 : figure.closest('.grid') ? 333 : 690;
const fit = (figure, size) => Plotly.relayout(figure.querySelector('.canvas'), size);
addEventListener('beforeprint', () => {
  closed = [...document.querySelectorAll('details:not([open])')];
  closed.forEach(one => { one.open = true; });
  drawings.forEach(figure => {
    const hidden = figure.hidden;
    figure.hidden = false;
    draw(figure);
    const height = figure.querySelector('.canvas').layout.height || 400;
    figure.dataset.height = height;
    fit(figure, {width: paper(figure), height: Math.min(height, 800)});
    figure.hidden = hidden;
  });
});
addEventListener('afterprint', () => {
  closed.forEach(one => { one.open = false; });
  drawings.forEach(figure => fit(figure, {width: null, height: Number(figure.dataset.height), autosize: true}));
});
"""
