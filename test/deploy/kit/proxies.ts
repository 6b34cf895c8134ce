/** Starts nginx, HAProxy or Caddy with the configuration of deploy/proxies in front of a relay. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { freePort } from '../../kit/redis.ts';
import { find, makeCertificate, Running } from './programs.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'deploy', 'proxies');

export type Proxy = AsyncDisposable & { readonly port: number; readonly certificate: string };

/** `relayPorts`: the ports of one or two relays on loopback. */
type Setup = { readonly folder: string; readonly port: number; readonly relayPorts: readonly number[] };
type Kind = {
  readonly program: string;
  /** Writes the configuration of deploy/proxies with this machine's ports and certificate; returns the arguments. */
  readonly prepare: (setup: Setup) => readonly string[];
};

/**
 * The delivered configuration with these texts replaced. Each text must occur, so that the test notices changes of the
 * file.
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
    prepare({ folder, port, relayPorts }) {
      const pem = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, name), 'utf8')).join('');
      writeFileSync(join(folder, 'tls.pem'), pem);
      const config = configured('haproxy.cfg', {
        'bind :443': `bind 127.0.0.1:${port}`,
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
    prepare({ folder, port, relayPorts }) {
      const site = configured('Caddyfile', {
        'relay.example {': `https://relay.example:${port}, https://localhost:${port} {\n\ttls ${folder}/tls.crt ${folder}/tls.key`,
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

/** Runs a proxy with its delivered configuration in front of relays. Resolves once it passes requests on. */
export async function startProxy(name: ProxyName, folder: string, ...relayPorts: readonly number[]): Promise<Proxy> {
  const { cert } = makeCertificate(folder);
  const port = await freePort();
  const { program, prepare } = PROXIES[name];
  const args = prepare({ folder, port, relayPorts });
  const running = new Running(find(program) ?? program, args, { cwd: folder, env: { HOME: folder } });
  const certificate = readFileSync(cert, 'utf8');
  for (let tries = 0; !(await answers(port, certificate)); tries++) {
    if (running.ended || tries === TRIES) throw new Error(`${program} does not answer: ${running.output}`);
  }
  return { port, certificate, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

/** Enough for about 20 seconds. */
const TRIES = 400;

/** Whether `/readyz` answers 200 through the proxy. Waits a moment if not. */
function answers(port: number, ca: string): Promise<boolean> {
  return new Promise((done) => {
    const later = (): void => void setTimeout(() => done(false), 50);
    const asked = request({ host: 'localhost', port, ca, path: '/readyz', agent: false }, (response) => {
      response.resume();
      if (response.statusCode === 200) done(true);
      else later();
    });
    asked.on('error', later);
    asked.end();
  });
}
