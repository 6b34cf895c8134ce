/** Lets TypeScript accept imports of stylesheets, which are imported for their effect. */

declare module '*.css';
