/** Starts the checks of the arguments of a call for the form of that call. */
import { useEffect, useRef, useState } from 'preact/hooks';
import workerUrl from './check-worker.ts?worker&url';
import {
  createChecker,
  syntaxFault,
  type Checked,
  type CheckEvents,
  type Checker,
  type CheckWorker,
} from './checker.ts';

const NOTHING_FOUND: Checked = { faults: [], unchecked: null };

/**
 * Returns what is known of the arguments, given as JSON text. A text that is not JSON is known at once. What is known
 * of another text follows a moment later, and until then what was known before.
 */
export function useCheck(schema: unknown, text: string): Checked {
  const [checked, setChecked] = useState<Checked>(NOTHING_FOUND);
  const checker = useRef<Checker | null>(null);
  const fault = syntaxFault(text);
  const hasSchema = schema !== null;
  useEffect(() => {
    if (!hasSchema) return undefined;
    const started = createChecker({ schema, startWorker, after, onChecked: setChecked });
    checker.current = started;
    return () => started.close();
  }, [schema]);
  useEffect(() => {
    if (fault === null && hasSchema) checker.current?.check(text);
  }, [schema, text]);
  if (fault !== null) return { faults: [fault], unchecked: null };
  return hasSchema ? checked : NOTHING_FOUND;
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

type Policies = {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): string;
  };
};

/**
 * Starts the worker. The page's content security policy requires Trusted Types: it allows one policy of this name,
 * which accepts the address of this worker only.
 */
function startWorker({ onMessage, onError }: CheckEvents): CheckWorker {
  const worker = new Worker((trusted ??= trustedUrl()));
  worker.onmessage = ({ data }) => onMessage(data);
  worker.onerror = onError;
  return { send: (message) => worker.postMessage(message), end: () => worker.terminate() };
}

let trusted: string | undefined;

function trustedUrl(): string {
  const policies: Policies | undefined = Reflect.get(globalThis, 'trustedTypes');
  if (!policies) return workerUrl;
  const createScriptURL = (url: string): string => {
    if (url === workerUrl) return url;
    throw new TypeError(`The console starts no worker from ${url}.`);
  };
  return policies.createPolicy('callboard-worker', { createScriptURL }).createScriptURL(workerUrl);
}
