/** Runs the verbs `sites ls` and `sites get`: sites and their sessions. */
import { GetSiteDocument, ListSitesDocument } from '../../../generated/cli.ts';
import { notFound } from '../failure.ts';
import { printListing } from '../listing.ts';
import { objectText } from '../output.ts';
import { readAddress } from '../params.ts';
import type { RunVerb } from '../verb.ts';

const ID = ['owner', 'site_id'];
const SITES = { shown: [...ID, 'client_id', 'title', 'actions', 'event_names'], id: ID };

export const sitesLs: RunVerb = (run) =>
  printListing(
    run,
    SITES,
    async (page) => (await run.relay.query(ListSitesDocument, { owner: run.flags['owner'], ...page })).sites,
  );

export const sitesGet: RunVerb = async ({ relay, args, io, output }) => {
  const [owner, site_id] = readAddress(args[0] ?? '', 'site');
  const { site } = await relay.query(GetSiteDocument, { owner, site_id });
  if (site === null) throw notFound('There is no such site.');
  io.print(objectText(site, output, { id: ID }));
};
