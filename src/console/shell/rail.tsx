/** Shows the rail at the side: the links to the pages, the theme, and who is signed in. */
import { useLocation } from 'preact-iso';
import { pagePath } from '../base.ts';
import { signOut, token } from '../session/session.ts';
import { Icon } from '../ui/icon.tsx';
import { Mark } from '../ui/shape.tsx';
import { clock, plural } from '../ui/format.ts';
import { isAdmin, silentNodes, viewer, waitCount } from './facts.tsx';
import { PAGE_GROUPS, type PageEntry } from './pages.ts';
import { ThemeSwitch } from './theme.tsx';

export function Rail() {
  const { path } = useLocation();
  return (
    <nav class="rail" id="rail" popover="auto" aria-label="Console">
      <a class="brand" href={pagePath('')}>
        <Mark />
        <span>Callboard</span>
      </a>
      {PAGE_GROUPS.map(({ name, pages }) => {
        const shown = pages.filter(({ admin }) => !admin || isAdmin.value);
        return (
          shown.length > 0 && (
            <div class="rail-group" key={name}>
              <h2>{name}</h2>
              <ul>
                {shown.map((page) => (
                  <RailItem key={page.path} page={page} current={path} />
                ))}
              </ul>
            </div>
          )
        );
      })}
      <div class="rail-foot">
        <ThemeSwitch />
        <Who />
      </div>
    </nav>
  );
}

function RailItem({ page, current }: { readonly page: PageEntry; readonly current: string }) {
  const href = pagePath(page.path);
  const isCurrent = page.path === '' ? `${current}/` === href : current === href || current.startsWith(`${href}/`);
  const count = countOf(page.path);
  const close = (): void => document.querySelector<HTMLElement>('#rail:popover-open')?.hidePopover();
  return (
    <li>
      <a class="rail-item" href={href} title={page.name} aria-current={isCurrent ? 'page' : undefined} onClick={close}>
        <Icon name={page.icon} />
        <span>{page.name}</span>
        {count !== null && <span class="rail-count">{count}</span>}
      </a>
    </li>
  );
}

/** Returns the figure beside the name of a page; null if there is none. */
function countOf(path: string): string | null {
  const silent = silentNodes.value.length;
  if (path === 'waits') return waitCount.value ? String(waitCount.value) : null;
  return path === 'nodes' && silent > 0 ? `${silent} silent` : null;
}

function Who() {
  const who = viewer.value;
  if (!who) return null;
  const admin = who.kind === 'ADMIN';
  const until =
    who.expiresAt === null
      ? 'Signed in with a token that does not expire'
      : `Signed in until ${clock(who.expiresAt)} UTC`;
  const name = admin ? subjectOf(token.value) : who.userId;
  const kind = admin ? (name === null ? '' : 'Administrator') : `User with ${plural(who.scopes.length, 'scope')}`;
  return (
    <div class="who">
      <b>{name ?? 'Administrator'}</b>
      <span>{[kind, until].filter((part) => part !== '').join('. ')}</span>
      <button class="btn btn-s btn-quiet" type="button" onClick={signOut}>
        <Icon name="exit" />
        <span>Sign out</span>
      </button>
    </div>
  );
}

/** Returns the subject that a JWT names. It is only shown; the relay decides whether the token is valid. */
function subjectOf(bearer: string | null): string | null {
  try {
    const [, payload = ''] = (bearer ?? '').split('.');
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const entry = Object.entries(claims ?? {}).find(([name]) => name === 'sub');
    return typeof entry?.[1] === 'string' ? entry[1] : null;
  } catch {
    return null;
  }
}
