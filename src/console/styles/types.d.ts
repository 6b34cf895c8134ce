/** Lets TypeScript accept imports of stylesheets, which are imported for their effect, and of addresses of workers. */

declare module '*.css';
declare module '*?worker&url' {
  /** The address of the built worker. */
  const url: string;
  export default url;
}
