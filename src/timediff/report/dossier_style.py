"""How a dossier looks, on a screen and above all on paper: A4, no menus, nothing that must be opened."""

from timediff.report.interactive import STYLE as COMMON

STYLE = (
    COMMON
    + """
.answer { display: grid; grid-template-columns: 15rem minmax(0, 1fr) 10rem; gap: 0 1.25rem; padding: .8rem 0; }
.answer { border-top: 1px solid var(--rule); break-inside: avoid; }
.answer h3 { margin: 0; font-size: 1rem; } .answer p { margin: 0 0 .25rem; font-size: .85rem; color: var(--soft); }
.answer .said { font-size: 1rem; color: var(--ink); font-weight: 600; } .answer .word { text-align: right; }
main > p, section > p, .wide table { width: 100%; max-width: none; }
.answer p, .plain li, .boxes li { max-width: none; overflow-wrap: anywhere; }
.blank { display: block; border-bottom: 1px solid var(--soft); min-width: 12rem; height: 1.5em; }
.form td { white-space: pre-line; }
.facts td { text-align: left; } .facts { width: 100%; margin-bottom: 1rem; } .facts th { width: 13rem; }
.files code { font-size: .8em; overflow-wrap: anywhere; } .files td { text-align: left; }
.settings { columns: 3 16rem; font: .8rem/1.5 ui-monospace, monospace; list-style: none; padding: 0; margin: 0; }
.settings li { overflow-wrap: anywhere; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2.5rem; }
.boxes { list-style: none; padding: 0; margin: .4rem 0; }
.boxes li { margin-bottom: .4rem; padding-left: 1.6rem; text-indent: -1.6rem; }
.box { display: inline-block; width: .95rem; height: .95rem; border: 1.5px solid var(--ink); vertical-align: -.12em; }
.boxes .box { margin-right: .4rem; text-indent: 0; }
.decision, .signatures { width: 100%; margin: 0 0 1rem; }
.decision th { text-align: left; width: 40%; } .decision td { text-align: left; }
.decision th, .decision td { padding-top: .7rem; padding-bottom: .7rem; }
.signatures td { height: 3rem; } .signatures th { text-align: left; } .signatures tbody th { width: 13rem; }
.signatures th, .signatures td { padding-left: .75rem; border-left: 1px solid var(--rule); text-align: left; }
.signatures tr > :first-child { padding-left: 0; border-left: 0; } .signatures th:nth-child(3) { width: 7rem; }
.lines .blank { height: 2em; }
@media (max-width: 900px) {
  .answer { grid-template-columns: minmax(0, 1fr); } .answer .word { text-align: left; }
  .columns { grid-template-columns: minmax(0, 1fr); }
}
@page { size: A4; margin: 16mm 15mm; }
@media print {
  body { font-size: .8rem; } section p, .answer h3 { break-after: auto; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 1.5rem; }
  .answer { grid-template-columns: 10rem minmax(0, 1fr) 7.5rem; } .columns { grid-template-columns: 1fr 1fr; }
  .answer .said { font-size: .9rem; } .answer p { font-size: .75rem; }
  .grade { padding: 0 .5rem; } li { break-inside: avoid; } .settings { font-size: .6rem; }
  section:last-of-type { break-inside: avoid; }
  .facts { font-size: .72rem; } .decision { font-size: .8rem; }
}
"""
)
