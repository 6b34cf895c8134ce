/** The types that the files of the overview share. Types only. */
import type { OverviewQuery } from '../../generated/console.ts';

export type OverviewData = OverviewQuery;
