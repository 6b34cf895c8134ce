/** The types that the files of this folder share. Types only. */
import type { OverviewQuery } from '../../generated/console.ts';

export type OverviewData = OverviewQuery;
