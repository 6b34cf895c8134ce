/**
 * The style of the relay’s own pages outside the console: `/`, `/reference` and the sign-in form of the GraphQL editor.
 * Colours, fonts and sizes equal those of the console (`src/console/styles`). These pages cannot load the console's
 * files, because the console may be switched off, so a test compares the two.
 */

/**
 * The CSS of a page. The page must have one `main` element with the class `relay-page`, which contains all of its
 * content.
 */
export const PAGE_STYLE = `:root{color-scheme:light dark;--bg:light-dark(#fff,#131414);--sunken:light-dark(#f7f6f3,#191a1a);--ink:light-dark(#1a1a18,#edece9);--ink-2:light-dark(#4b4a46,#bfbdb8);--ink-3:light-dark(#68665f,#97958f);--line:light-dark(#e7e5e1,#272828);--ctl:light-dark(#8a8780,#75736d);--accent:light-dark(#1b55ad,#8fb8f4);--on-accent:light-dark(#fff,#0b1626);--failed:light-dark(#b3261e,#f4908a);--gutter:1.5rem;--t-s:.8125rem;--ctl-h:2rem;--mono:ui-monospace,'SF Mono','Cascadia Mono','Segoe UI Mono','Roboto Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace}
@media (width<46rem){:root{--gutter:1rem;--t-s:.875rem;--ctl-h:2.5rem}}
html{background:var(--bg);color:var(--ink);-webkit-text-size-adjust:100%}
body:has(>.relay-page,>div>.relay-page){margin:0;background:var(--bg);color:var(--ink);font:400 var(--t-s)/1.25rem ui-sans-serif,-apple-system,BlinkMacSystemFont,'Segoe UI Variable Text','Segoe UI',Inter,Roboto,'Noto Sans',Ubuntu,Cantarell,'Liberation Sans',Arial,system-ui,sans-serif;overflow-wrap:break-word}
.relay-page,.relay-page *{box-sizing:border-box}
.relay-page{max-width:60rem;margin:0 auto;padding:var(--gutter)}
.relay-page h1{margin:0 0 .25rem;font-size:1.125rem;line-height:1.5rem;font-weight:600;letter-spacing:-.011em}
.relay-page h2{margin:2rem 0 .5rem;font-size:.875rem;font-weight:600}
.relay-page p{margin:0 0 .75rem;color:var(--ink-2)}
.relay-page a{color:var(--accent)}
.relay-page code,.relay-page pre{font-family:var(--mono);font-size:.75rem}
.relay-page :focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:.25rem}
.relay-page .brand{display:flex;align-items:center;gap:.5rem;height:3rem;margin:0;color:var(--ink);font-size:.875rem;font-weight:600}
.relay-page .brand svg{width:1.25rem;height:1rem}`;

/** The logo of Callboard with its name, as HTML. */
export const BRAND =
  '<p class="brand"><svg viewBox="0 0 20 16" aria-hidden="true"><rect y="1" width="3.5" height="14" rx="1" fill="currentColor"/><rect x="5.25" y="1" width="3.5" height="14" rx="1" fill="currentColor"/><rect x="10.5" y="1" width="3.5" height="14" rx="1" fill="currentColor"/><rect x="16.25" y="1.5" width="3" height="13" rx=".75" fill="none" stroke="currentColor" stroke-dasharray="2.2 1.4"/></svg>Callboard</p>';
