/**
 * The script that starts the GraphiQL editor in its page, as text. It takes a token from the page's session storage, or
 * gets one from the relay with the code in the URL's fragment. It asks the user for a token until the relay accepts
 * one. Tabs are stored in session storage too, and the URL does not change while the user types.
 */

export const START_SCRIPT = `async function startEditor({ endpoint, signInPath, tabs, ...options }) {
  const TOKEN = 'callboard:token';
  const root = document.querySelector('#root');
  const signIn = document.querySelector('#sign-in');
  const url = new URL(location.href);
  const code = new URLSearchParams(url.hash.slice(1)).get('code');
  const linked = url.searchParams.get('query');
  url.hash = '';
  url.searchParams.delete('query');
  history.replaceState(null, '', url);

  const post = (path, body, headers) =>
    fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    });
  const bearer = (token) => (token ? { authorization: 'Bearer ' + token } : {});

  /** Checks whether the relay accepts the token, and whether it shows its schema with that token. */
  const check = async (token) => {
    const answer = await post(endpoint, { query: '{ __typename __schema { queryType { name } } }' }, bearer(token));
    const { errors } = await answer.json();
    const refusal = errors?.[0].extensions?.code;
    return { accepted: !errors || refusal === 'forbidden', schema: !errors };
  };

  const ask = (problem) => {
    root.replaceChildren(signIn.content.cloneNode(true));
    const form = root.querySelector('form');
    const field = form.querySelector('input');
    const fault = form.querySelector('[role=alert]');
    fault.textContent = problem;
    field.setAttribute('aria-invalid', String(problem !== ''));
    field.focus();
    return new Promise((done) => {
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        done(field.value.trim());
      });
    });
  };

  /** Makes the editor open the saved tab that was active, without adding another one. */
  const restore = () => {
    const saved = sessionStorage.getItem('graphiql:tabState');
    if (saved === null) return;
    const { tabs, activeTabIndex } = JSON.parse(saved);
    const tab = tabs[activeTabIndex] ?? {};
    for (const part of ['query', 'variables', 'headers']) {
      if (tab[part]) sessionStorage.setItem('graphiql:' + part, tab[part]);
      else sessionStorage.removeItem('graphiql:' + part);
    }
  };

  let problem = '';
  let token = sessionStorage.getItem(TOKEN);
  if (code !== null) {
    const answer = await post(signInPath, { code });
    if (answer.ok) token = (await answer.json()).token;
    else problem = 'The link was used already, or is too old. Enter the token that the relay printed.';
  }
  let checked = await check(token);
  while (!checked.accepted) {
    if (token !== null && !problem) problem = 'The relay does not accept this token.';
    token = await ask(problem);
    problem = '';
    checked = await check(token);
  }
  if (token) sessionStorage.setItem(TOKEN, token);
  restore();
  root.replaceChildren();
  YogaGraphiQL.renderYogaGraphiQL(root, {
    ...options,
    endpoint,
    storage: sessionStorage,
    shouldPersistHeaders: true,
    additionalHeaders: bearer(token),
    defaultTabs: linked === null ? tabs : [{ query: linked }, ...tabs],
    ...(linked === null ? {} : { query: linked }),
    ...(checked.schema ? {} : { schema: null }),
    onEditQuery() {},
  });
}`;
