/** Starts the console: loads the styles and shows the page in `#root`. */
import { render } from 'preact';
import { redeemTicketOfUrl } from './session.ts';
import { App } from './shell/app.tsx';
import { showHiddenCharacters } from './ui/words.ts';
import './styles/index.css';

const root = document.querySelector('#root');
if (!root) throw new Error('The page has no element #root.');
showHiddenCharacters();
void redeemTicketOfUrl().then(() => render(<App />, root));
