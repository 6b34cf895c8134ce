/** Defines the scenes in which carol calls. A scene is a short story of invocations. */
import { pick, target, type Program, type Scene } from './scene.ts';

const page = (action: string) => target('carol', 'page', action);

const title: Scene = ({ caller }) => caller('carol').invoke(page('page.title'));

const highlight: Scene = ({ caller }) =>
  caller('carol').invoke(page('page.highlight'), { selector: pick('li', 'h1', 'p') });

const countWords: Scene = ({ caller }) =>
  caller('carol').invoke(page('page.count-words'), { selector: pick('body', 'ul') });

export const CAROL: Program = [
  [1, title],
  [1, highlight],
  [1, countWords],
];
