import { describe, expect, test } from 'vitest';
import { type Harness, it, outcome } from './harness.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

/** Returns the addresses that the page loads, with its own and that of the description. */
async function addresses(): Promise<readonly string[]> {
  const page = (await h.api('GET', '/docs')).text;
  const script = (await h.api('GET', '/docs/start.js')).text;
  const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g), ...script.matchAll(/url: '([^']+)'/g)].map(
    ([, to]) => to ?? '',
  );
  return ['/docs', ...named];
}

describe('/docs', () => {
  test('loads everything from its own host, and nothing from another one', async () => {
    const all = await addresses();
    expect(all.length).toBeGreaterThan(5);
    for (const address of all) {
      expect(address).toMatch(/^\/[^/]/);
      expect([address, (await h.api('GET', address)).status]).toEqual([address, 200]);
    }
    expect((await h.api('GET', '/docs/start.js')).text).toContain('validatorUrl: null');
  });

  test('lets a browser load nothing from elsewhere and run nothing that is written into the page', async () => {
    const { headers, text } = await h.api('GET', '/docs');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=/);
  });

  test.each([
    ['/docs', 'text/html; charset=utf-8'],
    ['/docs/', 'text/html; charset=utf-8'],
    ['/docs/start.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
    ['/docs/favicon.png', 'image/png'],
  ])('%s is served as %s, once for each version', async (path, type) => {
    const { status, headers } = await h.api('GET', path);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, 'no-cache']);
    const again = await h.api('GET', path, { headers: { 'if-none-match': String(headers['etag']) } });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  test('no other file is reachable', async () => {
    for (const path of [
      '/docs/page.html',
      '/docs/routes.ts',
      '/docs/../package.json',
      '/docs/%2e%2e/routes.ts',
      '/docs/index.html',
    ]) {
      expect([path, outcome(await h.api('GET', path))]).toEqual([path, '404 not_found']);
    }
  });
});
