//! How the report looks. Tables have fixed shares of the width, so that a long name never squeezes
//! other columns; below 820 pixels each row becomes a block.

pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1b1b1b;--muted:#595959;--back:#fff;--card:#f6f6f4;--line:#d0d0cc;\
--good:#14602b;--good-back:#e3f3e6;--bad:#8f1414;--bad-back:#fbe7e6;--open:#6b4a00;--open-back:#fdf1d4}\
@media(prefers-color-scheme:dark){:root{--text:#ececec;--muted:#adadad;--back:#161616;--card:#212121;\
--line:#454545;--good:#8fdca0;--good-back:#16321e;--bad:#ffa8a0;--bad-back:#401a18;--open:#f1cd7c;--open-back:#3b2f10}}\
*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,sans-serif;margin:0;color:var(--text);background:var(--back)}\
main{margin:0 auto;max-width:72rem;padding:1.5rem 1.25rem 3rem}\
h1{font-size:1.6rem;line-height:1.25;margin:.4rem 0 .2rem;overflow-wrap:anywhere}\
h2{font-size:1.15rem;margin:0 0 .6rem}h3{font-size:1rem;margin:0;overflow-wrap:anywhere}\
section{margin-top:2rem}p{margin:.3rem 0;overflow-wrap:anywhere}small{color:var(--muted);font-size:.875em}\
code,td.identifier{font-family:ui-monospace,monospace;font-size:.92em}\
.label,.meta,.cut{color:var(--muted)}\
.mood{display:inline-block;font-weight:600;margin:0;padding:.1rem .6rem;border-radius:.3rem}\
.good{color:var(--good);background:var(--good-back)}.bad{color:var(--bad);background:var(--bad-back)}\
.open{color:var(--open);background:var(--open-back)}\
.card{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--bad);border-radius:.3rem;padding:.7rem 1rem;margin:0 0 .8rem}\
.meta{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:.92em}.meta>*{overflow-wrap:anywhere;min-width:0}\
.next{font-weight:600}\
ul{margin:.3rem 0;padding-left:1.2rem}li{overflow-wrap:anywhere;margin:.15rem 0}\
.warnings{color:var(--open);font-size:.92em}\
table{border-collapse:collapse;width:100%;table-layout:fixed}\
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--line)}\
th{font-size:.875em;color:var(--muted);font-weight:600}th:first-child,td:first-child{padding-left:0}\
td.name,td.identifier,td.text{overflow-wrap:anywhere}td.word{overflow-wrap:break-word}\
.number{text-align:right;white-space:nowrap}td.number{font-size:.95em}\
.of4 .name,.of4 .text{width:32%}.of4 .word{width:20%}.of4 .number{width:16%}\
.of6 .name{width:24%}.of6 .identifier{width:24%}.of6 .word{width:13%}.of6 .number{width:13%}\
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.6rem 1.5rem;margin:0}\
dl div{min-width:0}dt{font-size:.875em;color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}\
@media(max-width:820px){main{padding:1rem .9rem 2rem}h1{font-size:1.3rem}\
table,tbody,tr,td{display:block;width:auto!important}\
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\
tr{background:var(--card);border:1px solid var(--line);border-radius:.3rem;padding:.5rem .8rem;margin:0 0 .6rem}\
td,td.number{border:0;padding:.1rem 0 .1rem 6.5rem;position:relative;text-align:left;white-space:normal;min-height:1.6rem}\
td:first-child{padding-left:0;font-weight:600}td:first-child>*{font-weight:400}\
td:not(:first-child)::before{content:attr(data-label);position:absolute;left:0;width:6rem;color:var(--muted);font:.875rem/1.7 system-ui,sans-serif}\
td:empty{display:none}td ul{margin-left:0}}\
@media print{:root{--text:#000;--back:#fff;--card:#fff}main{max-width:none;padding:0}tr,.card{break-inside:avoid}}";
