/**
 * Defines the site of the demo's task board and publishes its changes, through the control server of the host library.
 */

/** The control server as any local program uses it: plain HTTP and a token, without a callboard library. */
export type Control = { readonly url: string; readonly token: string };

export const SITE_ID = 'board';
/** The site's definition: the events that viewers may receive and the actions that they may invoke. */
const DEFINITION = {
  title: 'Task board',
  event_names: ['site_changed'],
  actions: ['task.finish'],
  capability_profile: { action_invocation: true, sharing: false },
};

/** Defines the site. Resolves with whether the control server accepted it; never rejects. */
export function defineSite(control: Control): Promise<boolean> {
  return ask(control, 'PUT', `/sites/${SITE_ID}`, DEFINITION);
}

/** Notifies all viewers of a change; they then read the tasks from the application. Never rejects. */
export function announce(control: Control, data: object): Promise<boolean> {
  return ask(control, 'POST', `/sites/${SITE_ID}/events`, { name: 'site_changed', data });
}

async function ask({ url, token }: Control, ...[method, path, body]: readonly [string, string, object]) {
  try {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const { ok } = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    return ok;
  } catch {
    return false;
  }
}
