/** Lets TypeScript accept imports of stylesheets and of the URLs of workers, which the bundler resolves. */

declare module '*.css';
declare module '*?worker&url' {
  /** The URL of the built worker. */
  const url: string;
  export default url;
}
