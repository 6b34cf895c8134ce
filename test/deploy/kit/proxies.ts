/** Starts nginx, HAProxy or Caddy with the configuration of deploy/proxies in front of a relay. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { freePort } from '../../kit/free-port.ts';
import { find, makeCertificate, Running } from './programs.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'deploy', 'proxies');

export type Proxy = AsyncDisposable & { readonly port: number; readonly certificate: string };

export type ProxyOptions = {
  /** The folder that receives the configuration. */
  readonly folder: string;
  /** The ports of the relays on loopback. */
  readonly relayPorts: readonly number[];
  /** The path below which the relays serve everything; by default the root. */
  readonly basePath?: string;
};
type Setup = Required<ProxyOptions> & { readonly port: number };
type Kind = {
  readonly program: string;
  /**
   * Writes the configuration of deploy/proxies with this machine's ports and certificate. Returns the proxy's
   * arguments.
   */
  readonly prepare: (setup: Setup) => readonly string[];
};

/**
 * Returns the delivered configuration with these texts replaced. Each text must occur, so that the test notices a
 * change of the file.
 */
function configured(file: string, replaced: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(FOLDER, file), 'utf8');
  for (const [from, to] of Object.entries(replaced)) {
    if (!text.includes(from)) throw new Error(`deploy/proxies/${file} has no "${from}"`);
    text = text.replaceAll(from, to);
  }
  return text;
}

export type ProxyName = 'nginx' | 'haproxy' | 'caddy';
export const PROXIES: Readonly<Record<ProxyName, Kind>> = {
  nginx: {
    program: 'nginx',
    prepare({ folder, port, relayPorts }) {
      const site = configured('nginx.conf', {
        'listen 443 ssl http2': `listen 127.0.0.1:${port} ssl http2`,
        '    server 127.0.0.1:4400 max_fails=0;': lines(
          relayPorts,
          (relay) => `    server 127.0.0.1:${relay} max_fails=0;`,
        ),
        '/etc/callboard/': `${folder}/`,
      });
      writeFileSync(join(folder, 'site.conf'), site);
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${name};`,
      );
      const main = `user root; daemon off; master_process off; pid nginx.pid; error_log stderr; events {}
http { access_log off; ${temporary.join(' ')} include site.conf; }`;
      writeFileSync(join(folder, 'nginx.conf'), main);
      return ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'];
    },
  },
  haproxy: {
    program: 'haproxy',
    prepare({ folder, port, relayPorts, basePath }) {
      const pem = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, name), 'utf8')).join('');
      writeFileSync(join(folder, 'tls.pem'), pem);
      const config = configured('haproxy.cfg', {
        'bind :443': `bind 127.0.0.1:${port}`,
        'GET /readyz': `GET ${basePath}/readyz`,
        '    server relay-1 127.0.0.1:4400': lines(
          relayPorts,
          (relay, at) => `    server relay-${at + 1} 127.0.0.1:${relay}`,
        ),
        '/etc/callboard/': `${folder}/`,
      });
      writeFileSync(join(folder, 'haproxy.cfg'), config);
      return ['-db', '-f', join(folder, 'haproxy.cfg')];
    },
  },
  caddy: {
    program: 'caddy',
    prepare({ folder, port, relayPorts, basePath }) {
      const site = configured('Caddyfile', {
        'relay.example {': `https://relay.example:${port}, https://localhost:${port} {\n\ttls ${folder}/tls.crt ${folder}/tls.key`,
        'health_uri /readyz': `health_uri ${basePath}/readyz`,
        '127.0.0.1:4400': relayPorts.map((relay) => `127.0.0.1:${relay}`).join(' '),
      });
      const globals = '{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system .\n}\n';
      writeFileSync(join(folder, 'Caddyfile'), `${globals}${site}`);
      return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
    },
  },
};

function lines(ports: readonly number[], line: (port: number, at: number) => string): string {
  return ports.map(line).join('\n');
}

export function isInstalled(name: ProxyName): boolean {
  return find(PROXIES[name].program) !== null;
}

/** Runs a proxy with its delivered configuration in front of relays. Resolves when it forwards requests. */
export async function startProxy(name: ProxyName, { folder, relayPorts, basePath = '' }: ProxyOptions): Promise<Proxy> {
  const { cert } = makeCertificate(folder);
  const port = await freePort();
  const { program, prepare } = PROXIES[name];
  const args = prepare({ folder, port, relayPorts, basePath });
  const running = new Running(find(program) ?? program, args, { cwd: folder, env: { HOME: folder } });
  const certificate = readFileSync(cert, 'utf8');
  const ready = { port, path: `${basePath}/readyz`, ca: certificate };
  for (let tries = 0; !(await answers(ready)); tries++) {
    if (!running.ended && tries < TRIES) continue;
    await running[Symbol.asyncDispose]();
    throw new Error(`${program} does not answer: ${running.output}`);
  }
  return { port, certificate, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

/** The number of attempts to reach the proxy: enough for about 20 seconds. */
const TRIES = 400;

/**
 * Resolves with whether a path answers 200 through the proxy. If it does not, a moment passes first, because proxies do
 * not report when they listen.
 */
function answers(at: { readonly port: number; readonly path: string; readonly ca: string }): Promise<boolean> {
  return new Promise((done) => {
    const later = (): void => void setTimeout(() => done(false), 50);
    const asked = request({ host: 'localhost', ...at, agent: false }, (response) => {
      response.resume();
      if (response.statusCode === 200) done(true);
      else later();
    });
    asked.on('error', later);
    asked.end();
  });
}
