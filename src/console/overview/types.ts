/** Defines the types that several files of the overview use. Contains types only. */
import type { OverviewQuery } from '../../generated/console.ts';

export type OverviewData = OverviewQuery;
