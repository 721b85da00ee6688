"""The report's style sheet: light and dark, one column on a phone, two on a screen."""

STYLE = """
:root { color-scheme: light dark; --paper:#f6f5f2; --card:#fff; --ink:#1d1f23; --soft:#666b74; --rule:#e3e1dc;
  --c1:#3b6fd4; --c2:#e08a1e; --c3:#d64545; --c4:#2f9e8f; --c5:#7a5bd0; --c6:#8a8f3c; --ember:#d9541e; }
@media (prefers-color-scheme: dark) { :root { --paper:#15171b; --card:#1d2026; --ink:#e9eaed; --soft:#9aa0aa;
  --rule:#30343c; --c1:#6f9bf0; --c2:#f0a84a; --c3:#f07070; --c4:#4fc4b2; --c5:#a58bf0; --c6:#b6bb62; --ember:#ff7a45; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--paper); color:var(--ink); font:16px/1.45 system-ui, sans-serif; }
main { max-width:1080px; margin:0 auto; padding:24px 16px 48px; }
h1 { font-size:1.6rem; margin:0 0 4px; } h1 b { color:var(--ember); }
h2 { font-size:1rem; margin:0 0 2px; } p { margin:0 0 12px; color:var(--soft); font-size:.9rem; }
.figures { display:grid; grid-template-columns:repeat(auto-fit, minmax(112px, 1fr)); gap:12px; margin:20px 0; }
.figure, .card { background:var(--card); border:1px solid var(--rule); border-radius:10px; padding:14px 16px; }
.figure b { display:block; font-size:1.3rem; white-space:nowrap; font-variant-numeric:tabular-nums; }
.figure span { color:var(--soft); font-size:.82rem; }
.cards { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap:16px; align-items:start; }
svg { display:block; width:100%; height:auto; } svg.graph { max-width:560px; margin:0 auto; }
text { fill:var(--ink); font:12px system-ui, sans-serif; } .tick { fill:var(--soft); font-size:11px; }
.name { font-weight:600; } .grid { stroke:var(--rule); } .box { fill:var(--card); stroke:var(--rule); }
.line { fill:none; stroke-width:2; stroke-linejoin:round; } .area { opacity:.18; stroke:none; } .dot { opacity:0; }
.dot:hover { opacity:1; } .bar:hover { opacity:.75; }
.mark { stroke:var(--ink); stroke-dasharray:3 3; } .marked { font-size:11px; }
.link { fill:none; stroke:var(--soft); stroke-width:1.5; }
.shuffle { fill:none; stroke:var(--ember); stroke-width:3; stroke-dasharray:7 4; } .head { fill:var(--soft); }
.c1 { fill:var(--c1); stroke:var(--c1); } .c2 { fill:var(--c2); stroke:var(--c2); } .c3 { fill:var(--c3); stroke:var(--c3); }
.c4 { fill:var(--c4); stroke:var(--c4); } .c5 { fill:var(--c5); stroke:var(--c5); } .c6 { fill:var(--c6); stroke:var(--c6); }
.line.c1,.line.c2,.line.c3,.line.c4,.line.c5,.line.c6 { fill:none; } .bar { stroke:none; } .area { stroke:none; }
.legend { display:flex; flex-wrap:wrap; gap:4px 14px; list-style:none; margin:8px 0 0; padding:0; font-size:.82rem; color:var(--soft); }
.key { display:inline-block; width:10px; height:10px; border-radius:3px; margin-right:6px; }
.k1 { background:var(--c1); } .k2 { background:var(--c2); } .k3 { background:var(--c3); }
.k4 { background:var(--c4); } .k5 { background:var(--c5); } .k6 { background:var(--c6); }
.column { display:grid; gap:16px; grid-template-columns:minmax(0, 1fr); min-width:0; } .card { min-width:0; } .scroll { max-height:340px; overflow:auto; } table { width:100%; border-collapse:collapse; font-size:.85rem; }
th { text-align:left; color:var(--soft); font-weight:500; position:sticky; top:0; background:var(--card); }
th, td { padding:5px 12px 5px 0; border-bottom:1px solid var(--rule); white-space:nowrap; vertical-align:top; }
th, td { white-space:normal; overflow-wrap:break-word; } td:first-child { white-space:nowrap; } td:last-child { min-width:9em; }
td.n, th.n { text-align:right; font-variant-numeric:tabular-nums; } .empty { padding:24px 0; }
"""
