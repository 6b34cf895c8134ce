/** The control server as any local program sees it: plain HTTP and a token. Nothing of callboard is needed for it. */
export type Control = { readonly url: string; readonly token: string };

export const SITE_ID = 'board';
/** What viewers may hear, and what they may do. */
const DEFINITION = {
  title: 'Task board',
  event_names: ['site_changed'],
  actions: ['task.finish'],
  capability_profile: { action_invocation: true, sharing: false },
};

/** Whether the control server took it. Never rejects. */
export function defineSite(control: Control): Promise<boolean> {
  return ask(control, 'PUT', `/sites/${SITE_ID}`, DEFINITION);
}

/** Tells all viewers that something changed; what, they ask the application itself. Never rejects. */
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
