/** Runs the verb `status`, which prints the state of the deployment on one screen. */
import { OPERATOR_EXIT } from '../failure.ts';
import { objectText } from '../output.ts';
import { readReport } from '../report.ts';
import type { RunVerb } from '../verb.ts';

export const status: RunVerb = async ({ relay, io, output }) => {
  const report = await readReport(relay);
  io.print(objectText(report, output, { id: ['node_id'] }));
  if (report.needs_attention.length === 0) return OPERATOR_EXIT.done;
  for (const fault of report.needs_attention) io.complain(`Needs attention: ${fault}.\n`);
  return OPERATOR_EXIT.unexpected;
};
