// Makes programs of the documentation import `callboard/...` from the sources, so that they never run an old build.
import { registerHooks } from 'node:module';
import { readFileSync } from 'node:fs';

const root = new URL('../../../', import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

registerHooks({
  resolve(specifier, context, next) {
    const entry = /^callboard(\/\w+)?$/.test(specifier) ? exports[specifier.replace('callboard', '.')] : undefined;
    if (entry === undefined) return next(specifier, context);
    const source = entry.default.replace('./dist/', './src/').replace(/\.js$/, '.ts');
    return { url: new URL(source, root).href, shortCircuit: true };
  },
});
