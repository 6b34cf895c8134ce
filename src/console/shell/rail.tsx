/** Shows the navigation rail at the side: links to the pages, the theme, and who is signed in. */
import { useLocation } from 'preact-iso';
import { pagePath } from '../base.ts';
import { signOut } from '../session.ts';
import { Switch } from '../ui/dialogs.tsx';
import { Icon } from '../ui/icons.tsx';
import { Mark } from '../ui/shapes.tsx';
import { chooseZone, clock, isLocalTime, zoneName } from '../ui/zones.ts';
import { drainingCount, silentNodes, viewer, waitCount } from './facts.tsx';
import { shownGroups, shownPages } from './pages.tsx';
import { ThemeSwitch } from './theme.tsx';

export function Rail() {
  const { path } = useLocation();
  return (
    <nav class="rail" id="rail" popover="auto" aria-label="Console">
      <a class="brand" href={pagePath('')}>
        <Mark />
        <span>Callboard</span>
      </a>
      {shownGroups().map(
        ([name, pages]) =>
          pages.length > 0 && (
            <div class="rail-group" key={name}>
              <h2>{name}</h2>
              <ul>
                {pages.map((page) => (
                  <RailItem key={page.path} page={page} current={path} />
                ))}
              </ul>
            </div>
          ),
      )}
      <div class="rail-foot">
        <ThemeSwitch />
        <ZoneSwitch />
        <Who />
      </div>
    </nav>
  );
}

type RailItemProps = { readonly page: ReturnType<typeof shownPages>[number]; readonly current: string };

function RailItem({ page, current }: RailItemProps) {
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

/** Returns the number to show beside the name of a page; null if there is none. */
function countOf(path: string): string | null {
  if (path === 'waits') return waitCount.value ? String(waitCount.value) : null;
  if (path !== 'nodes') return null;
  if (silentNodes.value.length > 0) return `${silentNodes.value.length} silent`;
  return drainingCount.value > 0 ? `${drainingCount.value} draining` : null;
}

function Who() {
  const who = viewer.value;
  if (!who) return null;
  const until =
    who.expiresAt === null
      ? 'Signed in with a token that does not expire'
      : `Signed in until ${clock(who.expiresAt)} ${zoneName()}`;
  return (
    <div class="who">
      <b>{who.name ?? who.userId}</b>
      <span>
        {who.kind === 'ADMIN' ? 'Administrator' : 'User'}. {until}
      </span>
      <button class="btn btn-s btn-quiet" type="button" onClick={signOut}>
        <Icon name="exit" />
        <span>Sign out</span>
      </button>
    </div>
  );
}

function ZoneSwitch() {
  const choices = [
    { value: false, text: 'UTC' },
    { value: true, text: 'Local' },
  ];
  return <Switch legend="Times" name="zone" choices={choices} chosen={isLocalTime.value} onChoose={chooseZone} />;
}
