/** Shows the page of the current URL, if the viewer may see it. */
import type { ComponentType } from 'preact';
import { Route, Router, useLocation } from 'preact-iso';
import { pagePath } from '../base.ts';
import { Boundary } from '../ui/boundary.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { PageHead } from '../ui/page.tsx';
import { isAdmin, viewer } from './facts.tsx';
import { PAGE_ROUTES, preloadPage, type PageRoute } from './page-routes.ts';

export function Routes() {
  const { url, path } = useLocation();
  if (viewer.value === null) preloadPage(path);
  if (viewer.value === null) return <Loading what="who is signed in" />;
  return (
    <Boundary place={url}>
      <Router>
        {PAGE_ROUTES.map((route) => (
          <Route key={route.path} path={pagePath(route.path)} component={pageOf(route)} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </Boundary>
  );
}

const REFUSED = new Map<string, ComponentType>();

/** Returns the page if the viewer may open it, otherwise a page that says who may. */
function pageOf({ page, ofUser, admins }: PageRoute): ComponentType {
  if (isAdmin.value) return page;
  if (admins === undefined) return ofUser ?? page;
  const refused = REFUSED.get(admins) ?? (() => <ForAdmins name={admins} />);
  REFUSED.set(admins, refused);
  return refused;
}

function ForAdmins({ name }: { readonly name: string }) {
  return (
    <>
      <PageHead title={name} />
      <Empty
        mark="key"
        title={`${name === 'Capacity' || name === 'Deduplication' ? `${name} is` : `${name} are`} for administrators`}
        acts={
          <a class="btn" href={pagePath('clients')}>
            My clients
          </a>
        }
      >
        <p>You are signed in as user {viewer.value?.userId}. You can see your own clients, calls and waits.</p>
      </Empty>
    </>
  );
}

function NotFound() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty
        title="The console has no page at this address"
        acts={
          <a class="btn" href={pagePath('')}>
            To the start
          </a>
        }
      >
        <p>The address may be cut, or an id in it may contain a character that must be percent-encoded.</p>
      </Empty>
    </>
  );
}
