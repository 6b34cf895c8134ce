/** Builds the page with React's own transform. */
export default { oxc: { jsx: { runtime: 'automatic', importSource: 'react' } }, build: { target: 'es2022' } };
