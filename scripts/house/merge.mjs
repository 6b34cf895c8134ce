/**
 * Merges source files by subject, in one step: writes each group of `groups.json` into one file, drops the imports
 * between its members and the exports that nobody outside uses, renames what would clash, and rewrites the imports and
 * the paths in documents, tests and mutants. Prints the cycles that the merged files would have, and what needs a look.
 *
 * It needs ts-morph, which the project does not depend on: `npm install --no-save ts-morph`, then
 * `node scripts/house/merge.mjs . scripts/house/groups.json [--dry]`, then prettier and tsc. `groups.json` maps each new
 * file to its members, the main one first; a group may have a `header` and renames. Delete this folder once it has run.
 */
import { Project, SyntaxKind, Node } from 'ts-morph';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
const [root, specFile, ...flags] = process.argv.slice(2);
const spec = JSON.parse(fs.readFileSync(specFile, 'utf8'));
const dry = flags.includes('--dry');
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
const code = tracked.filter(
  (f) => /\.(ts|tsx|mts)$/.test(f) && !f.endsWith('.d.ts') && fs.existsSync(path.join(root, f)),
);
const project = new Project({
  compilerOptions: {
    allowImportingTsExtensions: true,
    noEmit: true,
    module: 199,
    moduleResolution: 99,
    target: 99,
    jsx: 4,
    skipLibCheck: true,
    strict: true,
  },
  skipAddingFilesFromTsConfig: true,
});
for (const f of code) project.addSourceFileAtPath(path.join(root, f));
const rel = (sf) => path.relative(root, sf.getFilePath());
const abs = (f) => path.join(root, f);
const warn = (...a) => console.log('WARN', ...a);

const groups = Object.entries(spec).map(([target, v]) => ({ target, ...(Array.isArray(v) ? { files: v } : v) }));
const targetOf = new Map();
for (const g of groups)
  for (const f of g.files) {
    if (targetOf.has(f)) throw new Error(`${f} twice`);
    if (!fs.existsSync(abs(f))) throw new Error(`no file ${f}`);
    targetOf.set(f, g.target);
  }
for (const g of groups)
  if (!g.files.includes(g.target) && fs.existsSync(abs(g.target)) && !targetOf.has(g.target))
    throw new Error(`target exists: ${g.target}`);
// Helpers
const resolve = (sf, spec) =>
  spec.startsWith('.') ? path.posix.normalize(path.posix.join(path.posix.dirname(rel(sf)), spec)) : null;
const relSpec = (from, to) => {
  let r = path.posix.relative(path.posix.dirname(from), to);
  if (!r.startsWith('.')) r = './' + r;
  return r;
};
const pascal = (f) =>
  path
    .basename(f)
    .replace(/\.[a-z]+$/, '')
    .split('-')
    .map((w) => w[0].toUpperCase() + w.slice(1))
    .join('');

function topNames(sf) {
  const out = new Map();
  for (const s of sf.getStatements()) {
    if (Node.isVariableStatement(s))
      for (const d of s.getDeclarations()) {
        const n = d.getNameNode();
        if (Node.isIdentifier(n)) out.set(n.getText(), n);
        else
          for (const id of n.getDescendantsOfKind(SyntaxKind.BindingElement))
            if (Node.isIdentifier(id.getNameNode())) out.set(id.getName(), id.getNameNode());
      }
    else if (
      (Node.isFunctionDeclaration(s) ||
        Node.isClassDeclaration(s) ||
        Node.isTypeAliasDeclaration(s) ||
        Node.isInterfaceDeclaration(s) ||
        Node.isEnumDeclaration(s)) &&
      s.getNameNode()
    )
      out.set(s.getName(), s.getNameNode());
  }
  return out;
}
// re-exports: ultimate origin of a name
const reexports = new Map();
for (const sf of project.getSourceFiles())
  for (const d of sf.getExportDeclarations()) {
    const v = d.getModuleSpecifierValue();
    if (!v) continue;
    const to = resolve(sf, v);
    if (!to) continue;
    for (const n of d.getNamedExports()) {
      let m = reexports.get(rel(sf));
      if (!m) reexports.set(rel(sf), (m = new Map()));
      m.set(n.getAliasNode()?.getText() ?? n.getName(), [to, n.getName()]);
    }
  }
for (const sf of project.getSourceFiles())
  for (const d of sf.getExportDeclarations()) {
    const v = d.getModuleSpecifierValue();
    if (!v || d.getNamedExports().length) continue;
    const to = resolve(sf, v);
    const t = to && project.getSourceFile(abs(to));
    if (!t) continue;
    let m = reexports.get(rel(sf));
    if (!m) reexports.set(rel(sf), (m = new Map()));
    for (const [n] of topNames(t)) if (!m.has(n)) m.set(n, [to, n]);
  }
for (const sf of project.getSourceFiles()) {
  // import type { X }; export type { X };
  const imps = new Map();
  for (const d of sf.getImportDeclarations()) {
    const to = resolve(sf, d.getModuleSpecifierValue());
    if (to)
      for (const n of d.getNamedImports()) imps.set(n.getAliasNode()?.getText() ?? n.getName(), [to, n.getName()]);
  }
  for (const d of sf.getExportDeclarations())
    if (!d.getModuleSpecifierValue())
      for (const n of d.getNamedExports())
        if (imps.has(n.getName())) {
          let m = reexports.get(rel(sf));
          if (!m) reexports.set(rel(sf), (m = new Map()));
          m.set(n.getAliasNode()?.getText() ?? n.getName(), imps.get(n.getName()));
        }
}
const BARRELS = ['src/core/core.ts'];
const origin = (file, name) => {
  const next = reexports.get(file)?.get(name);
  return next ? origin(...next) : [file, name];
};
// names used as imports from each file (outside own group)
const usedOutside = new Map(); // file -> Set(names) or '*'
function noteUse(file, name, importer) {
  if (name !== '*') {
    const [of, n] = origin(file, name);
    if (of !== file) noteUse(of, n, importer);
  }
  const t = targetOf.get(file);
  if (!t) return;
  const importerTarget = targetOf.get(importer) ?? importer;
  if (importerTarget === t) return;
  let s = usedOutside.get(file);
  if (!s) usedOutside.set(file, (s = new Set()));
  s.add(name);
}
for (const sf of project.getSourceFiles()) {
  for (const d of sf.getImportDeclarations()) {
    const to = resolve(sf, d.getModuleSpecifierValue());
    if (!to) continue;
    if (d.getNamespaceImport()) noteUse(to, '*', rel(sf));
    for (const n of d.getNamedImports()) noteUse(to, n.getName(), rel(sf));
  }
  for (const d of sf.getExportDeclarations()) {
    const v = d.getModuleSpecifierValue();
    if (!v) continue;
    const to = resolve(sf, v);
    if (!to) continue;
    if (d.getNamedExports().length === 0) noteUse(to, '*', rel(sf));
    for (const n of d.getNamedExports()) noteUse(to, n.getName(), rel(sf));
  }
  for (const c of sf.getDescendantsOfKind(SyntaxKind.CallExpression))
    if (c.getExpression().getKind() === SyntaxKind.ImportKeyword) {
      const a = c.getArguments()[0];
      if (Node.isStringLiteral(a)) {
        const to = resolve(sf, a.getLiteralValue());
        if (to) noteUse(to, '*', rel(sf));
      }
    }
  for (const c of sf.getDescendantsOfKind(SyntaxKind.ImportType)) {
    const a = c.getArgument();
    const l = a.getDescendantsOfKind(SyntaxKind.StringLiteral)[0];
    if (l) {
      const to = resolve(sf, l.getLiteralValue());
      if (to) noteUse(to, '*', rel(sf));
    }
  }
}
// 1. aliases of intra-group imports, conflicts
for (const g of groups) {
  const files = g.files.map((f) => project.getSourceFileOrThrow(abs(f)));
  const set = new Set(g.files);
  for (const sf of files)
    for (const d of sf.getImportDeclarations()) {
      const to = resolve(sf, d.getModuleSpecifierValue());
      if (!to || !set.has(to)) continue;
      if (d.getNamespaceImport()) {
        const ns = d.getNamespaceImport().getText();
        let hit;
        while (
          (hit = sf
            .getDescendantsOfKind(SyntaxKind.PropertyAccessExpression)
            .find((p) => p.getExpression().getText() === ns))
        )
          hit.replaceWithText(hit.getName());
      }
      for (const n of d.getNamedImports()) if (n.getAliasNode()) n.removeAliasWithRename();
    }
  for (const [k, v] of Object.entries(g.rename ?? {})) {
    const i = k.lastIndexOf(':');
    const f = k.slice(0, i),
      name = k.slice(i + 1);
    const node = topNames(project.getSourceFileOrThrow(abs(f))).get(name);
    if (!node) {
      warn('no', k);
      continue;
    }
    node.rename(v);
  }
  const seen = new Map();
  // imports from outside: name -> module
  const imported = new Map();
  for (const sf of files)
    for (const d of sf.getImportDeclarations()) {
      const to = resolve(sf, d.getModuleSpecifierValue());
      if (to && set.has(to)) continue;
      const mod = to ? (targetOf.get(to) ?? to) : d.getModuleSpecifierValue();
      const names = [
        ...d
          .getNamedImports()
          .filter((n) => !to || !set.has(origin(to, n.getName())[0]))
          .map((n) => [
            n.getAliasNode()?.getText() ?? n.getName(),
            to ? origin(to, n.getName()).join('#') : `${mod}#${n.getName()}`,
          ]),
      ];
      if (d.getDefaultImport()) names.push([d.getDefaultImport().getText(), `${mod}#default`]);
      if (d.getNamespaceImport()) names.push([d.getNamespaceImport().getText(), `${mod}#*`]);
      for (const [n, from] of names) {
        if (imported.has(n) && imported.get(n) !== from)
          warn(g.target, `import conflict ${n}: ${imported.get(n)} and ${from} in ${rel(sf)}`);
        imported.set(n, from);
      }
    }
  for (const sf of files) {
    for (const [name, node] of topNames(sf)) {
      const clash = seen.has(name) || imported.has(name);
      if (clash) {
        const fresh = /^[A-Z0-9_]+$/.test(name)
          ? `${pascal(rel(sf))
              .replace(/([a-z])([A-Z])/g, '$1_$2')
              .toUpperCase()}_${name}`
          : /^[A-Z]/.test(name)
            ? `${pascal(rel(sf))}${name}`
            : `${name}Of${pascal(rel(sf))}`;
        warn(
          g.target,
          `name ${name} of ${rel(sf)} clashes with ${seen.get(name) ?? 'import ' + imported.get(name)}: now ${fresh}`,
        );
        node.rename(fresh);
        seen.set(fresh, rel(sf));
      } else seen.set(name, rel(sf));
    }
  }
}
// 2. build merged texts
const results = new Map();
{
  // cycles of the merged graph
  const edges = new Map();
  for (const sf of project.getSourceFiles()) {
    const from = targetOf.get(rel(sf)) ?? rel(sf);
    if (!from.startsWith('src/') && !from.startsWith('demo/')) continue;
    const m = edges.get(from) ?? new Map();
    edges.set(from, m);
    const add = (v, names) => {
      const to0 = resolve(sf, v);
      if (!to0) return;
      for (const n of names.length ? names : [null]) {
        const to = n ? origin(to0, n)[0] : to0;
        const direct = targetOf.get(to0) ?? to0;
        const t =
          targetOf.get(to) === from
            ? from
            : BARRELS.includes(to0) && from.startsWith('src/core/') && n
              ? (targetOf.get(to) ?? to)
              : direct;
        if (t !== from) {
          const why = m.get(t) ?? new Set();
          why.add(`${path.basename(rel(sf))}->${path.basename(to0)}`);
          m.set(t, why);
        }
      }
    };
    for (const d of sf.getImportDeclarations())
      add(
        d.getModuleSpecifierValue(),
        d.getNamedImports().map((n) => n.getName()),
      );
    for (const d of sf.getExportDeclarations())
      if (d.getModuleSpecifierValue())
        add(
          d.getModuleSpecifierValue(),
          d.getNamedExports().map((n) => n.getName()),
        );
  }
  // Tarjan
  let idx = 0;
  const st = [],
    on = new Set(),
    I = new Map(),
    Lw = new Map();
  const sccs = [];
  const go = (v) => {
    I.set(v, idx);
    Lw.set(v, idx++);
    st.push(v);
    on.add(v);
    for (const w of (edges.get(v) ?? new Map()).keys()) {
      if (!I.has(w)) {
        go(w);
        Lw.set(v, Math.min(Lw.get(v), Lw.get(w)));
      } else if (on.has(w)) Lw.set(v, Math.min(Lw.get(v), I.get(w)));
    }
    if (Lw.get(v) === I.get(v)) {
      const c = [];
      let w;
      do {
        w = st.pop();
        on.delete(w);
        c.push(w);
      } while (w !== v);
      if (c.length > 1) sccs.push(c);
    }
  };
  for (const v of edges.keys()) if (!I.has(v)) go(v);
  for (const c of sccs) {
    console.log('CYCLE of', c.length);
    const set = new Set(c);
    for (const v of c)
      for (const [w, why] of edges.get(v)) if (set.has(w)) console.log('   ', v, '->', w, '|', [...why].join(' '));
  }
}
for (const g of groups) {
  const set = new Set(g.files);
  const members = g.files.map((f) => project.getSourceFileOrThrow(abs(f)));
  // hazards: top-level evaluation
  const declares = new Map();
  for (const sf of members)
    for (const [n, node] of topNames(sf)) {
      const p = node.getParent();
      if (
        Node.isVariableDeclaration(p) ||
        Node.isClassDeclaration(p) ||
        Node.isBindingElement(p) ||
        Node.isEnumDeclaration(p)
      )
        declares.set(n, rel(sf));
    }
  const needs = new Map(members.map((sf) => [rel(sf), new Set()]));
  for (const sf of members) {
    const visit = (node) => {
      if (
        Node.isFunctionDeclaration(node) ||
        Node.isArrowFunction(node) ||
        Node.isFunctionExpression(node) ||
        Node.isMethodDeclaration(node) ||
        Node.isGetAccessorDeclaration(node) ||
        Node.isSetAccessorDeclaration(node) ||
        Node.isConstructorDeclaration(node) ||
        Node.isTypeAliasDeclaration(node) ||
        Node.isInterfaceDeclaration(node) ||
        Node.isTypeNode(node) ||
        Node.isImportDeclaration(node)
      )
        return;
      if (Node.isPropertyDeclaration(node) && !node.isStatic()) return;
      if (Node.isIdentifier(node)) {
        const f = declares.get(node.getText());
        if (f && f !== rel(sf)) needs.get(rel(sf)).add(f);
        return;
      }
      node.forEachChild(visit);
    };
    sf.forEachChild(visit);
    // calls of functions at top level of other members are hazards too: be careful
    for (const s of sf.getStatements())
      if (Node.isVariableStatement(s) || Node.isExpressionStatement(s))
        for (const c of s.getDescendantsOfKind(SyntaxKind.CallExpression)) {
          const e = c.getExpression();
          if (Node.isIdentifier(e))
            for (const d of sf.getImportDeclarations()) {
              const to = resolve(sf, d.getModuleSpecifierValue());
              if (to && set.has(to) && d.getNamedImports().some((n) => n.getName() === e.getText()))
                needs.get(rel(sf)).add(to);
            }
        }
  }
  const order = [];
  const state = new Map();
  const visit = (f) => {
    if (state.get(f) === 2) return;
    if (state.get(f) === 1) {
      warn(g.target, 'evaluation cycle at', f);
      return;
    }
    state.set(f, 1);
    for (const n of g.files) if (needs.get(f).has(n)) visit(n);
    state.set(f, 2);
    order.push(f);
  };
  for (const f of g.files) visit(f);
  const imports = new Map(); // spec -> {default, ns, values:Set, types:Set, side}
  const bodies = [];
  const taken = new Map();
  let header = g.header ? `/** ${g.header} */` : null;
  const exportsFrom = [];
  for (const f of order) {
    const sf = project.getSourceFileOrThrow(abs(f));
    // export pruning
    const used = usedOutside.get(f) ?? new Set();
    const keepAll = used.has('*') || /(^|\/)index\.ts$/.test(g.target) || /\/bin\.ts$/.test(g.target);
    if (!keepAll)
      for (const s of sf.getStatements()) {
        if (!Node.isExportable(s) || !s.hasExportKeyword?.()) continue;
        const names = Node.isVariableStatement(s) ? s.getDeclarations().map((d) => d.getName()) : [s.getName?.()];
        const original = (n) => n;
        if (names.every((n) => n && !used.has(original(n)))) s.setIsExported(false);
      }
    const drop = [];
    for (const d of sf.getImportDeclarations()) {
      const v = d.getModuleSpecifierValue();
      const to = resolve(sf, v);
      drop.push([d.getStart(true), d.getEnd()]);
      if (to && set.has(to)) continue;
      const key = to ? (targetOf.get(to) ?? to) : v;
      const rec = imports.get(key) ?? {
        own: to !== null,
        values: new Map(),
        types: new Map(),
        def: null,
        ns: null,
        nsType: false,
        side: false,
      };
      imports.set(key, rec);
      const typeOnly = d.isTypeOnly();
      if (d.getDefaultImport()) rec.def = { name: d.getDefaultImport().getText(), typeOnly };
      if (d.getNamespaceImport()) {
        rec.ns = d.getNamespaceImport().getText();
        rec.nsType = typeOnly;
      }
      for (const n of d.getNamedImports()) {
        if (to && set.has(origin(to, n.getName())[0])) continue;
        const local = n.getAliasNode()?.getText() ?? n.getName();
        const from = to ? origin(to, n.getName()).join('#') : `${v}#${n.getName()}`;
        const before = taken.get(local);
        if (before && before.from === from && before.key !== key) {
          if (!(typeOnly || n.isTypeOnly())) {
            before.rec.types.delete(before.text);
            before.rec.values.set(before.text, true);
          }
          continue;
        }
        if (to && BARRELS.includes(to) && f.startsWith('src/core/') && origin(to, n.getName())[0] !== to) {
          const [of] = origin(to, n.getName());
          const okey = targetOf.get(of) ?? of;
          const r2 = imports.get(okey) ?? {
            own: true,
            values: new Map(),
            types: new Map(),
            def: null,
            ns: null,
            nsType: false,
            side: false,
          };
          imports.set(okey, r2);
          if (!before) {
            taken.set(local, { from, key: okey, rec: r2, text: n.getName() });
            (typeOnly || n.isTypeOnly() ? r2.types : r2.values).set(
              n.getAliasNode() ? `${n.getName()} as ${n.getAliasNode().getText()}` : n.getName(),
              true,
            );
          }
          continue;
        }
        const text = n.getAliasNode() ? `${n.getName()} as ${n.getAliasNode().getText()}` : n.getName();
        if (!before) taken.set(local, { from, key, rec, text });
        (typeOnly || n.isTypeOnly() ? rec.types : rec.values).set(text, true);
      }
      if (!d.getImportClause()) rec.side = true;
    }
    for (const d of sf.getExportDeclarations()) {
      const v = d.getModuleSpecifierValue();
      if (!v) continue;
      const to = resolve(sf, v);
      if (to && set.has(to)) {
        drop.push([d.getStart(true), d.getEnd()]);
        continue;
      }
      if (to) d.setModuleSpecifier(relSpec(g.target, targetOf.get(to) ?? to));
    }
    // dynamic imports and import types
    for (const c of sf.getDescendantsOfKind(SyntaxKind.CallExpression))
      if (c.getExpression().getKind() === SyntaxKind.ImportKeyword) {
        const a = c.getArguments()[0];
        if (Node.isStringLiteral(a)) {
          const to = resolve(sf, a.getLiteralValue());
          if (to) {
            if (set.has(to)) warn(g.target, 'dynamic import of a member');
            a.setLiteralValue(relSpec(g.target, targetOf.get(to) ?? to));
          }
        }
      }
    for (const c of sf.getDescendantsOfKind(SyntaxKind.ImportType)) {
      const l = c.getArgument().getDescendantsOfKind(SyntaxKind.StringLiteral)[0];
      if (l) {
        const to = resolve(sf, l.getLiteralValue());
        if (to) l.setLiteralValue(relSpec(g.target, targetOf.get(to) ?? to));
      }
    }
    if (path.dirname(f) !== path.dirname(g.target) && /import\.meta|new URL\(/.test(sf.getFullText()))
      warn(g.target, 'import.meta or URL in moved', f);
    let text = sf.getFullText();
    // recompute drops after edits
    const drops = [];
    for (const d of sf.getImportDeclarations()) drops.push([d.getStart(), d.getEnd()]);
    for (const d of sf.getExportDeclarations()) {
      const v = d.getModuleSpecifierValue();
      const to = v && resolve(sf, v);
      if (to && (set.has(to) || path.posix.normalize(path.posix.join(path.posix.dirname(g.target), v)) === g.target))
        drops.push([d.getStart(), d.getEnd()]);
    }
    // header comment: first comment in file, before the first statement
    const first = text.match(/^(#!.*\n)?\s*(\/\*\*[\s\S]*?\*\/)\s*\n/);
    let own = null;
    if (first) {
      own = first[2];
      drops.push([first.index + (first[1]?.length ?? 0), first[0].length]);
    }
    const shebang = first?.[1] ?? '';
    drops.sort((a, b) => b[0] - a[0]);
    for (const [s, e] of drops) text = text.slice(0, s) + text.slice(e);
    text = text.replace(/\n{3,}/g, '\n\n').trim();
    if (f === g.target || (!header && f === g.files[0])) {
      if (!g.header) header = shebang + own;
    }
    const isMain = f === g.target || (!g.files.includes(g.target) && f === g.files[0]);
    const ownText = own
      ? own
          .replace(/^\/\*\*\s*|\s*\*\/$/g, '')
          .replace(/\n\s*\* ?/g, ' ')
          .trim()
      : '';
    bodies.push({ f, isMain, ownText, text });
  }
  header ??= bodies.find((b) => b.isMain)?.ownText ?? '';
  const lines = [];
  const keys = [...imports.keys()];
  const statement = (key, rec) => {
    const spec = rec.own ? relSpec(g.target, key) : key;
    const out = [];
    const values = [...rec.values.keys()].sort();
    const types = [...rec.types.keys()].filter((t) => !rec.values.has(t)).sort();
    if (rec.side && !values.length && !types.length && !rec.def && !rec.ns) out.push(`import '${spec}';`);
    if (rec.ns) out.push(`import ${rec.nsType ? 'type ' : ''}* as ${rec.ns} from '${spec}';`);
    const def = rec.def ? rec.def.name : '';
    if (values.length || (def && !rec.def.typeOnly)) {
      const named = [...values, ...types.map((t) => `type ${t}`)];
      out.push(
        `import ${[def, named.length ? `{ ${named.join(', ')} }` : ''].filter(Boolean).join(', ')} from '${spec}';`,
      );
    } else if (types.length) out.push(`import type { ${types.join(', ')} } from '${spec}';`);
    if (def && rec.def.typeOnly && !values.length) out.push(`import type ${def} from '${spec}';`);
    return out;
  };
  const foreign = keys
    .filter((k) => !imports.get(k).own)
    .sort((a, b) => b.startsWith('node:') - a.startsWith('node:') || (a < b ? -1 : 1));
  const own = keys
    .filter((k) => imports.get(k).own)
    .map((k) => [relSpec(g.target, k), k])
    .sort((a, b) => b[0].startsWith('..') - a[0].startsWith('..') || (a[0] < b[0] ? -1 : 1))
    .map((p) => p[1]);
  for (const k of [...foreign, ...own]) lines.push(...statement(k, imports.get(k)));
  const sections = bodies
    .map((b) => b.text && (b.isMain || bodies.length === 1 || !b.ownText ? b.text : `// ${b.ownText}\n\n${b.text}`))
    .filter(Boolean);
  const text = `${header}\n${lines.join('\n')}\n\n${sections.join('\n\n')}\n`;
  results.set(g.target, { text, order, lines: text.split('\n').length });
}
// 3. rewrite importers
const changed = new Set();
for (const sf of project.getSourceFiles()) {
  if (targetOf.has(rel(sf))) continue;
  let touched = false;
  const at = rel(sf);
  for (const d of [...sf.getImportDeclarations(), ...sf.getExportDeclarations()]) {
    const v = d.getModuleSpecifierValue?.();
    if (!v) continue;
    const to = resolve(sf, v);
    const t = to && targetOf.get(to);
    if (!t || t === to) {
      if (t) touched = touched;
      continue;
    }
    d.setModuleSpecifier(relSpec(at, t));
    touched = true;
  }
  for (const c of sf.getDescendantsOfKind(SyntaxKind.CallExpression))
    if (c.getExpression().getKind() === SyntaxKind.ImportKeyword) {
      const a = c.getArguments()[0];
      if (Node.isStringLiteral(a)) {
        const to = resolve(sf, a.getLiteralValue());
        const t = to && targetOf.get(to);
        if (t && t !== to) {
          a.setLiteralValue(relSpec(at, t));
          touched = true;
        }
      }
    }
  for (const c of sf.getDescendantsOfKind(SyntaxKind.ImportType)) {
    const l = c.getArgument().getDescendantsOfKind(SyntaxKind.StringLiteral)[0];
    if (l) {
      const to = resolve(sf, l.getLiteralValue());
      const t = to && targetOf.get(to);
      if (t && t !== to) {
        l.setLiteralValue(relSpec(at, t));
        touched = true;
      }
    }
  }
  // merge duplicates
  const byModule = new Map();
  for (const d of sf.getImportDeclarations()) {
    const v = d.getModuleSpecifierValue();
    if (!v.startsWith('.') || d.getNamespaceImport() || d.getDefaultImport()) continue;
    const first = byModule.get(v);
    if (!first) {
      byModule.set(v, d);
      continue;
    }
    if (!touched) continue;
    const bothTypes = first.isTypeOnly() && d.isTypeOnly();
    if (!bothTypes) {
      if (first.isTypeOnly()) {
        first.setIsTypeOnly(false);
        for (const n of first.getNamedImports()) n.setIsTypeOnly(true);
      }
    }
    for (const n of d.getNamedImports()) {
      const typeOnly = !bothTypes && (d.isTypeOnly() || n.isTypeOnly());
      if (first.getNamedImports().some((m) => m.getText().replace(/^type /, '') === n.getText().replace(/^type /, '')))
        continue;
      first.addNamedImport({ name: n.getName(), alias: n.getAliasNode()?.getText(), isTypeOnly: typeOnly });
    }
    d.remove();
  }
  if (touched || !sf.isSaved()) {
    changed.add(at);
  }
}
for (const [t, { lines, order }] of results)
  console.log(String(lines).padStart(5), t, order.length > 1 ? `<- ${order.length}` : '');
if (dry) process.exit(0);
// write
for (const g of groups) {
  if (!g.files.includes(g.target)) {
    fs.mkdirSync(path.dirname(abs(g.target)), { recursive: true });
    execFileSync('git', ['mv', g.files[0], g.target], { cwd: root });
  }
}
for (const g of groups)
  for (const f of g.files)
    if (f !== g.target && fs.existsSync(abs(f)) && !results.has(f))
      execFileSync('git', ['rm', '-qf', f], { cwd: root });
for (const [t, { text }] of results) fs.writeFileSync(abs(t), text);
for (const f of changed) fs.writeFileSync(abs(f), project.getSourceFileOrThrow(abs(f)).getFullText());
// path mentions
const renames = [...targetOf].filter(([f, t]) => f !== t).sort((a, b) => b[0].length - a[0].length);
const texts = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter(
    (f) =>
      /\.(ts|tsx|mts|mjs|md|json|yml|yaml|graphql|lua|css|html)$/.test(f) &&
      f !== 'package-lock.json' &&
      fs.existsSync(abs(f)),
  );
const mention = [];
for (const f of texts) {
  let text = fs.readFileSync(abs(f), 'utf8');
  const before = text;
  for (const [a, b] of renames) {
    if (a.startsWith('src/')) {
      text = text.replaceAll(a, b);
      for (const q of ["'", '`', '"']) text = text.replaceAll(`${q}${a.slice(4)}${q}`, `${q}${b.slice(4)}${q}`);
    } else text = text.replaceAll(a, b);
  }
  if (text !== before) {
    fs.writeFileSync(abs(f), text);
    mention.push(f);
  }
}
console.log('mentions in', mention.join(' '));
