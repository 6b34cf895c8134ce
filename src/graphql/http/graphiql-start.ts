/**
 * The script that starts the editor in its page, as text. It takes a token from the page's session storage or, with the
 * code in the URL's fragment, from the relay; otherwise it asks for one. A token that the relay refuses is asked for
 * again. Tabs are kept in session storage too, and the URL is left alone while the user types.
 */
export const START_SCRIPT = `async function startEditor({ endpoint, signInPath, tabs, ...options }) {
  const TOKEN = 'callboard:token';
  const root = document.querySelector('#root');
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

  /** Whether the relay takes the token, and whether it shows its schema. */
  const check = async (token) => {
    const answer = await post(endpoint, { query: '{ __typename __schema { queryType { name } } }' }, bearer(token));
    const { errors } = await answer.json();
    const refusal = errors?.[0].extensions?.code;
    return { accepted: !errors || refusal === 'forbidden', schema: !errors };
  };

  const ask = (problem) => {
    const form = document.createElement('form');
    form.style.cssText = 'font: 16px/1.5 system-ui; max-width: 30rem; margin: 20vh auto; padding: 1rem';
    const label = document.createElement('label');
    label.textContent = 'Token ';
    const field = document.createElement('input');
    field.type = 'password';
    field.name = 'token';
    field.autocomplete = 'off';
    field.required = true;
    field.style.cssText = 'width: 100%; font: inherit; padding: .4rem; box-sizing: border-box';
    label.append(field);
    const button = document.createElement('button');
    button.textContent = 'Open the editor';
    button.style.cssText = 'font: inherit; margin-top: .8rem; padding: .4rem .8rem';
    const note = document.createElement('p');
    note.textContent = problem || 'The relay printed a token at its start. It is kept until this tab is closed.';
    form.append(note, label, button);
    root.replaceChildren(form);
    field.focus();
    return new Promise((done) => {
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        done(field.value.trim());
      });
    });
  };

  /** Makes the editor open the saved tab that was in front, without adding another one. */
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
