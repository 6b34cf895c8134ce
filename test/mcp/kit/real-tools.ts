/**
 * The shapes of the arguments of a hundred tools of servers that people use. The names and forms follow what the
 * servers' public lists say of them; the texts are written for this file. Three generators write most such schemas, and
 * each has its habits: `zod` closes its objects and names draft 7, `model` gives titles and writes a choice with null
 * for what may be left out, `hand` writes as little as possible.
 */
type Schema = Readonly<Record<string, unknown>>;
type Properties = Readonly<Record<string, Schema>>;

const str = (description?: string, more: Schema = {}): Schema => ({
  type: 'string',
  ...(description !== undefined && { description }),
  ...more,
});
const num = (description?: string, more: Schema = {}): Schema => ({ ...str(description, more), type: 'number' });
const int = (description?: string, more: Schema = {}): Schema => ({ ...str(description, more), type: 'integer' });
const flag = (description?: string, more: Schema = {}): Schema => ({ ...str(description, more), type: 'boolean' });
const one = (...values: readonly string[]): Schema => ({ type: 'string', enum: values });
const list = (items: Schema, description?: string, more: Schema = {}): Schema => ({
  type: 'array',
  items,
  ...(description !== undefined && { description }),
  ...more,
});
const map = (values: Schema = {}): Schema => ({ type: 'object', additionalProperties: values });

function hand(properties: Properties, required: readonly string[] = []): Schema {
  return { type: 'object', properties, ...(required.length > 0 && { required }) };
}

function zod(properties: Properties, required: readonly string[] = []): Schema {
  return {
    ...hand(properties, required),
    additionalProperties: false,
    $schema: 'http://json-schema.org/draft-07/schema#',
  };
}

/** `model`: a choice with null for each property that is not required. */
function model(properties: Properties, required: readonly string[] = [], $defs?: Properties): Schema {
  const titled = Object.entries(properties).map(([name, schema]) => {
    const title = name.replaceAll('_', ' ');
    return [
      name,
      required.includes(name) ? { ...schema, title } : { anyOf: [schema, { type: 'null' }], default: null, title },
    ];
  });
  return { ...hand(Object.fromEntries(titled) as Properties, required), title: 'Arguments', ...($defs && { $defs }) };
}

const repository = { owner: str('Owner of the repository'), repo: str('Name of the repository') };
const pages = { page: num('Page, from 1', { minimum: 1 }), perPage: num('Rows a page', { minimum: 1, maximum: 100 }) };
const both = ['owner', 'repo'];
const element = {
  element: str('What the element is, for people'),
  ref: str('Reference from the snapshot of the page'),
};
const edit = zod({ oldText: str('Text to look for'), newText: str('Text instead') }, ['oldText', 'newText']);
const entity = hand({ name: str(), entityType: str(), observations: list(str()) }, [
  'name',
  'entityType',
  'observations',
]);
const relation = hand({ from: str(), to: str(), relationType: str() }, ['from', 'to', 'relationType']);
const richText = hand({
  type: one('text'),
  text: hand({ content: str(), link: { type: ['object', 'null'], properties: { url: str() } } }, ['content']),
});
const block = hand({
  object: one('block'),
  type: one('paragraph', 'bulleted_list_item'),
  paragraph: hand({ rich_text: list(richText) }),
});
const kube = { namespace: str('Namespace', { default: 'default' }), context: str('Context of the configuration') };

/** The tools, by server and name. */
// prettier-ignore
export const REAL_TOOLS: Readonly<Record<string, Schema>> = {
  'files.read_file': zod({ path: str(), tail: num('Only the last lines'), head: num('Only the first lines') }, ['path']),
  'files.read_multiple_files': zod({ paths: list(str(), 'Files to read', { minItems: 1 }) }, ['paths']),
  'files.write_file': zod({ path: str(), content: str() }, ['path', 'content']),
  'files.edit_file': zod({ path: str(), edits: list(edit), dryRun: flag('Only show the changes', { default: false }) }, ['path', 'edits']),
  'files.list_directory_with_sizes': zod({ path: str(), sortBy: { ...one('name', 'size'), default: 'name' } }, ['path']),
  'files.search_files': zod({ path: str(), pattern: str(), excludePatterns: list(str(), undefined, { default: [] }) }, ['path', 'pattern']),
  'files.list_allowed_directories': zod({}),
  'git.git_status': model({ repo_path: str() }, ['repo_path']),
  'git.git_diff': model({ repo_path: str(), target: str(), context_lines: int() }, ['repo_path', 'target']),
  'git.git_log': model({ repo_path: str(), max_count: int(), start_timestamp: str('Begin of the time'), end_timestamp: str() }, ['repo_path']),
  'git.git_add': model({ repo_path: str(), files: list(str()) }, ['repo_path', 'files']),
  'git.git_branch': model({ repo_path: str(), branch_type: str('local, remote or all'), contains: str() }, ['repo_path', 'branch_type']),
  'fetch.fetch': { ...model({ url: str('Address', { format: 'uri', minLength: 1 }), max_length: int('Characters', { exclusiveMinimum: 0, exclusiveMaximum: 1_000_000 }), raw: flag() }, ['url']), description: 'What to fetch' },
  'time.convert_time': hand({ source_timezone: str(), time: str('Time as HH:MM'), target_timezone: str() }, ['source_timezone', 'time', 'target_timezone']),
  'memory.create_entities': zod({ entities: list(entity) }, ['entities']),
  'memory.create_relations': zod({ relations: list(relation) }, ['relations']),
  'memory.add_observations': zod({ observations: list(hand({ entityName: str(), contents: list(str()) }, ['entityName', 'contents'])) }, ['observations']),
  'memory.read_graph': zod({}),
  'memory.search_nodes': zod({ query: str('Words to look for') }, ['query']),
  'thinking.sequentialthinking': zod({ thought: str(), nextThoughtNeeded: flag(), thoughtNumber: int('Number', { minimum: 1 }), totalThoughts: int('Number', { minimum: 1 }), branchId: str(), isRevision: flag() }, [
    'thought',
    'nextThoughtNeeded',
    'thoughtNumber',
    'totalThoughts',
  ]),
  'github.get_file_contents': hand({ ...repository, path: str('Path', { default: '/' }), ref: str(), sha: str() }, both),
  'github.create_or_update_file': hand({ ...repository, path: str(), content: str(), message: str(), branch: str(), sha: str() }, [...both, 'path', 'content', 'message', 'branch']),
  'github.push_files': hand({ ...repository, branch: str(), message: str(), files: list({ ...hand({ path: str(), content: str() }, ['path', 'content']), additionalProperties: false }) }, [...both, 'branch', 'files', 'message']),
  'github.search_repositories': hand({ query: str('Search'), sort: one('stars', 'forks', 'help-wanted-issues', 'updated'), order: one('asc', 'desc'), minimal_output: flag('Less', { default: true }), ...pages }, ['query']),
  'github.search_code': hand({ query: str(), sort: str('Only indexed'), order: one('asc', 'desc'), ...pages }, ['query']),
  'github.list_issues': hand({ ...repository, state: one('OPEN', 'CLOSED'), labels: list(str()), orderBy: one('CREATED_AT', 'UPDATED_AT', 'COMMENTS'), since: str('Date in ISO 8601'), after: str(), ...pages }, both),
  'github.issue_write': hand(
    {
      method: { ...one('create', 'update'), description: 'What to do' },
      ...repository,
      issue_number: num(),
      title: str(),
      body: str(),
      assignees: list(str()),
      labels: list(str()),
      milestone: num(),
      state_reason: one('completed', 'not_planned', 'duplicate'),
    },
    ['method', ...both],
  ),
  'github.add_issue_comment': hand({ ...repository, issue_number: num(), body: str() }, [...both, 'issue_number', 'body']),
  'github.create_pull_request': hand({ ...repository, title: str(), body: str(), head: str(), base: str(), draft: flag(), maintainer_can_modify: flag() }, [...both, 'title', 'head', 'base']),
  'github.pull_request_read': hand({ method: one('get', 'get_diff', 'get_status', 'get_files', 'get_reviews'), ...repository, pullNumber: num(), ...pages }, ['method', ...both, 'pullNumber']),
  'github.merge_pull_request': hand({ ...repository, pullNumber: num(), commit_title: str(), merge_method: one('merge', 'squash', 'rebase') }, [...both, 'pullNumber']),
  'github.add_comment_to_pending_review': hand({ ...repository, pullNumber: num(), path: str(), body: str(), subjectType: one('FILE', 'LINE'), line: num(), side: one('LEFT', 'RIGHT') }, [
    ...both,
    'pullNumber',
    'path',
    'body',
    'subjectType',
  ]),
  'github.actions_list': hand({ method: one('list_workflows', 'list_workflow_runs'), ...repository, resource_id: str(), workflow_runs_filter: hand({ actor: str(), branch: str(), status: one('queued', 'in_progress', 'completed') }) }, [
    'method',
    ...both,
  ]),
  'github.get_me': hand({}),
  'gitlab.create_merge_request': zod({ project_id: str(), title: str(), source_branch: str(), target_branch: str(), draft: flag(), labels: { anyOf: [list(str()), str()] } }, ['project_id', 'title', 'source_branch', 'target_branch']),
  'gitlab.list_issues': zod({ project_id: str(), assignee_id: { anyOf: [num(), str()] }, scope: one('created_by_me', 'assigned_to_me', 'all'), confidential: flag() }, ['project_id']),
  'browser.browser_navigate': zod({ url: str('Where to go') }, ['url']),
  'browser.browser_click': zod({ ...element, doubleClick: flag(), button: one('left', 'right', 'middle'), modifiers: list(one('Alt', 'Control', 'ControlOrMeta', 'Meta', 'Shift')) }, ['element', 'ref']),
  'browser.browser_type': zod({ ...element, text: str(), submit: flag(), slowly: flag() }, ['element', 'ref', 'text']),
  'browser.browser_fill_form': zod({ fields: list(zod({ name: str(), type: one('textbox', 'checkbox', 'radio', 'combobox', 'slider'), ref: str(), value: str() }, ['name', 'type', 'ref', 'value'])) }, ['fields']),
  'browser.browser_select_option': zod({ ...element, values: list(str()) }, ['element', 'ref', 'values']),
  'browser.browser_take_screenshot': zod({ type: { ...one('png', 'jpeg'), default: 'png' }, filename: str(), fullPage: flag() }),
  'browser.browser_drag': zod({ startElement: str(), startRef: str(), endElement: str(), endRef: str() }, ['startElement', 'startRef', 'endElement', 'endRef']),
  'browser.browser_tabs': zod({ action: one('list', 'new', 'close', 'select'), index: num() }, ['action']),
  'browser.browser_evaluate': zod({ function: str('A function of the page'), element: str(), ref: str() }, ['function']),
  'browser.browser_mouse_click_xy': zod({ element: str(), x: num(), y: num() }, ['element', 'x', 'y']),
  'devtools.performance_start_trace': zod({ reload: flag(), autoStop: flag(), filePath: str() }, ['reload', 'autoStop']),
  'devtools.emulate': zod({
    networkConditions: one('No emulation', 'Offline', 'Slow 3G', 'Fast 4G'),
    cpuThrottlingRate: num('Factor', { minimum: 1, maximum: 20 }),
    geolocation: { anyOf: [zod({ latitude: num('Degrees', { minimum: -90, maximum: 90 }), longitude: num() }, ['latitude', 'longitude']), { type: 'null' }] },
  }),
  'devtools.list_network_requests': zod({ pageSize: int('Rows', { exclusiveMinimum: 0 }), pageIdx: int('Page', { minimum: 0 }), resourceTypes: list(one('document', 'script', 'xhr', 'fetch', 'websocket')) }),
  'devtools.fill_form': zod({ elements: list(zod({ uid: str(), value: str() }, ['uid', 'value'])) }, ['elements']),
  'puppeteer.puppeteer_screenshot': hand({ name: str(), selector: str(), width: num(), height: num(), encoded: flag() }, ['name']),
  'puppeteer.puppeteer_navigate': hand({ url: str(), launchOptions: { type: 'object', description: 'Options' }, allowDangerous: flag() }, ['url']),
  'slack.slack_post_message': hand({ channel_id: str(), text: str() }, ['channel_id', 'text']),
  'slack.slack_list_channels': hand({ limit: num('Most', { default: 100 }), cursor: str() }),
  'slack.slack_add_reaction': hand({ channel_id: str(), timestamp: str(), reaction: str() }, ['channel_id', 'timestamp', 'reaction']),
  'slack.conversations_history': hand({ channel_id: str(), limit: str('Time or number', { default: '1d' }), include_activity_messages: flag('All', { default: false }) }, ['channel_id']),
  'notion.search': zod(
    {
      query: str(),
      query_type: one('internal', 'user'),
      filters: zod({ created_date_range: zod({ start_date: str('Day', { format: 'date' }), end_date: str('Day', { format: 'date' }) }), created_by_user_ids: list(str(), 'Users', { maxItems: 100 }) }),
    },
    ['query'],
  ),
  'notion.create_pages': zod(
    {
      pages: list(hand({ properties: map({ type: ['string', 'number', 'null'] }), content: str() }), 'Pages', { maxItems: 100 }),
      parent: { anyOf: [zod({ page_id: str(), type: { type: 'string', const: 'page_id' } }, ['page_id']), zod({ database_id: str(), type: { type: 'string', const: 'database_id' } }, ['database_id'])] },
    },
    ['pages'],
  ),
  'notion.patch_block_children': { ...hand({ block_id: str(), children: list({ $ref: '#/$defs/block' }), after: str() }, ['block_id', 'children']), $defs: { block } },
  'notion.post_page': { ...hand({ parent: { $ref: '#/$defs/parent' }, properties: hand({ title: list(richText) }, ['title']) }, ['parent', 'properties']), $defs: { parent: hand({ page_id: str('Page', { format: 'uuid' }) }, ['page_id']) } },
  'linear.list_issues': zod({ team: str(), limit: num('Most', { maximum: 250, default: 50 }), orderBy: { ...one('createdAt', 'updatedAt'), default: 'updatedAt' }, includeArchived: flag(), assignee: str() }),
  'linear.create_issue': zod(
    { title: str(), team: str(), priority: num('0 to 4'), labels: list(str()), dueDate: str('Day', { format: 'date' }), links: list(zod({ url: str('Address', { format: 'uri' }), title: str('Title', { minLength: 1 }) }, ['url', 'title'])) },
    ['title', 'team'],
  ),
  'jira.jira_search': model({ jql: str(), fields: str(), limit: int('Most', { minimum: 1 }), start_at: int('First', { minimum: 0 }), projects_filter: str() }, ['jql']),
  'jira.jira_create_issue': model({ project_key: str('Project', { pattern: '^[A-Z][A-Z0-9_]+$' }), summary: str(), issue_type: str(), additional_fields: { anyOf: [map(), str()] } }, ['project_key', 'summary', 'issue_type']),
  'jira.jira_batch_create': model({ issues: str('A list as JSON'), validate_only: flag() }, ['issues']),
  'confluence.confluence_create_page': model({ space_key: str(), title: str(), content: str(), parent_id: { anyOf: [str(), int()] }, content_format: one('markdown', 'wiki', 'storage') }, ['space_key', 'title', 'content']),
  'sentry.search_events': zod(
    {
      organizationSlug: str(),
      naturalLanguageQuery: str('Question', { minLength: 1 }),
      regionUrl: { anyOf: [str('Address', { format: 'uri' }), { type: 'null' }], default: null },
      limit: num('Most', { minimum: 1, maximum: 100, default: 10 }),
    },
    ['organizationSlug', 'naturalLanguageQuery'],
  ),
  'sentry.update_issue': zod({ organizationSlug: str(), issueId: str(), status: one('resolved', 'resolvedInNextRelease', 'unresolved', 'ignored'), assignedTo: str() }),
  'stripe.create_customer': zod({ name: str(), email: str('Address', { format: 'email' }) }, ['name']),
  'stripe.create_price': zod({ product: str(), unit_amount: int('In cents'), currency: str('Code', { maxLength: 3 }), recurring: zod({ interval: one('day', 'week', 'month', 'year'), interval_count: int() }, ['interval']) }, [
    'product',
    'unit_amount',
    'currency',
  ]),
  'stripe.list_payment_intents': zod({ customer: str(), limit: int('Most', { minimum: 1, maximum: 100 }) }),
  'supabase.execute_sql': zod({ project_id: str(), query: str() }, ['project_id', 'query']),
  'supabase.list_tables': zod({ project_id: str(), schemas: list(str(), 'Schemas', { default: ['public'] }) }, ['project_id']),
  'supabase.deploy_edge_function': zod({ project_id: str(), name: str(), entrypoint_path: str('Begin', { default: 'index.ts' }), files: list(zod({ name: str(), content: str() }, ['name', 'content'])) }, ['project_id', 'name', 'files']),
  'postgres.query': hand({ sql: str() }),
  'sqlite.write_query': hand({ query: str('The query') }, ['query']),
  'redis.hset': model({ name: str(), key: str(), value: { anyOf: [str(), int(), num()] }, expire_seconds: int() }, ['name', 'key', 'value']),
  'redis.vector_search': model({ query_vector: list(num()), index_name: str(), k: int(), return_fields: list(str()) }, ['query_vector']),
  'mongo.aggregate': zod({ database: str(), collection: str(), pipeline: list({ type: 'object', additionalProperties: {}, properties: {} }) }, ['database', 'collection', 'pipeline']),
  'mongo.find': zod({ database: str(), collection: str(), filter: map(), projection: map(), limit: num('Most', { default: 10 }), sort: map(one('asc', 'desc')) }, ['database', 'collection']),
  'mongo.create_index': zod(
    {
      database: str(),
      collection: str(),
      definition: list({
        anyOf: [
          zod({ type: { type: 'string', const: 'classic' }, keys: map() }, ['type', 'keys']),
          zod({ type: { type: 'string', const: 'vectorSearch' }, fields: list(zod({ type: one('vector', 'filter'), path: str(), numDimensions: num() }, ['type', 'path'])) }, ['type', 'fields']),
        ],
      }),
    },
    ['database', 'collection', 'definition'],
  ),
  'elastic.search': zod({ index: str('Index', { minLength: 1 }), queryBody: map() }, ['index', 'queryBody']),
  'kube.pods_list': hand({ labelSelector: str('Labels', { pattern: '([A-Za-z0-9][-A-Za-z0-9_/.]*[A-Za-z0-9])+' }), ...kube }),
  'kube.pods_exec': hand({ name: str(), command: list(str()), container: str(), ...kube }, ['name', 'command']),
  'kube.resources_create_or_update': hand({ resource: str('A resource as YAML or JSON'), ...kube }, ['resource']),
  'kube.helm_install': hand({ chart: str(), name: str(), values: { type: 'object', additionalProperties: true }, ...kube }, ['chart']),
  'docker.create_container': model({ image: str(), name: str(), ports: { anyOf: [map({ anyOf: [int(), list(int())] })] }, environment: { anyOf: [list(str()), map(str())] }, detach: flag() }, ['image']),
  'terraform.search_modules': hand({ module_query: str(), current_offset: num('First', { minimum: 0, default: 0 }) }, ['module_query']),
  'aws.call_aws': model({ cli_command: { anyOf: [str(), list(str())] }, max_results: int() }, ['cli_command']),
  'aws.search_documentation': { ...model({ search_phrase: str(), limit: int('Most', { minimum: 1, maximum: 50 }), search_intent: str() }, ['search_phrase']), title: 'search_documentationArguments' },
  'maps.maps_directions': hand({ origin: str(), destination: str(), mode: one('driving', 'walking', 'bicycling', 'transit') }, ['origin', 'destination']),
  'maps.maps_search_places': hand({ query: str(), location: hand({ latitude: num(), longitude: num() }), radius: num('Metres, at most 50000') }, ['query']),
  'search.brave_web_search': zod(
    { query: str('Words', { maxLength: 400 }), count: int('Rows', { minimum: 1, maximum: 20, default: 10 }), offset: int('Page', { minimum: 0, maximum: 9 }), freshness: { anyOf: [one('pd', 'pw', 'pm'), str()] } },
    ['query'],
  ),
  'search.tavily_extract': hand({ urls: list(str()), extract_depth: { ...one('basic', 'advanced'), default: 'basic' }, include_images: flag('Pictures', { default: false }) }, ['urls']),
  'firecrawl.firecrawl_scrape': zod(
    {
      url: str('Address', { format: 'uri' }),
      formats: list({ anyOf: [one('markdown', 'html', 'links'), zod({ type: { type: 'string', const: 'json' }, prompt: str(), schema: map() }, ['type'])] }),
      waitFor: num(),
      location: zod({ country: str(), languages: list(str()) }),
    },
    ['url'],
  ),
  'firecrawl.firecrawl_crawl': zod({ url: str(), limit: num(), webhook: { anyOf: [str(), zod({ url: str(), headers: map(str()) }, ['url'])] }, allowExternalLinks: flag() }, ['url']),
  'context7.get_library_docs': zod({ libraryId: str(), topic: str(), page: int('Page', { minimum: 1, maximum: 10 }) }, ['libraryId']),
  'figma.get_code': zod({ nodeId: str('Node', { pattern: '^(?:I?(?:\\d+):(?:\\d+)(?:;(?:\\d+):(?:\\d+))*|)$' }), clientLanguages: str(), forceCode: flag() }),
  'calendar.create_event': zod(
    {
      calendarId: str(),
      summary: str(),
      start: str('Time', { pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}:\\d{2})?$' }),
      end: str(),
      attendees: list(zod({ email: str('Address', { format: 'email' }), optional: flag() }, ['email'])),
      reminders: zod({ useDefault: flag(), overrides: list(zod({ method: { ...one('email', 'popup'), default: 'popup' }, minutes: num() }, ['minutes'])) }, ['useDefault']),
    },
    ['calendarId', 'summary', 'start', 'end'],
  ),
  'mail.send_email': zod({ to: list(str()), subject: str(), body: str(), mimeType: { ...one('text/plain', 'text/html', 'multipart/alternative'), default: 'text/plain' }, cc: list(str()), attachments: list(str()) }, [
    'to',
    'subject',
    'body',
  ]),
  'home.HassTurnOn': hand({ name: str(), area: str(), floor: str(), domain: list(str()), device_class: list(one('window', 'curtain', 'blind')) }),
  'home.HassLightSet': hand({ name: str(), color: str(), temperature: int('Kelvin', { minimum: 0 }), brightness: int('Percent', { minimum: 0, maximum: 100 }) }),
  'excel.write_data': model({ filepath: str(), sheet_name: str(), data: list(list({})), start_cell: str() }, ['filepath', 'sheet_name', 'data']),
  'blender.set_texture': model({ object_name: str(), texture_id: str() }, ['object_name', 'texture_id']),
  'n8n.update_partial_workflow': hand({ id: str(), operations: { type: 'array', description: 'Changes', items: { type: 'object', additionalProperties: true } }, validateOnly: flag() }, ['id', 'operations']),
  'shopify.query': { anyOf: [zod({ kind: { type: 'string', const: 'product' }, handle: str() }, ['kind', 'handle']), zod({ kind: { type: 'string', const: 'order' }, number: int() }, ['kind', 'number'])] },
  'asana.create_task': hand({ name: str(), project_id: str(), custom_fields: { type: 'object', patternProperties: { '^[0-9]+$': {} } }, followers: { type: 'array' } }, ['name']),
  'notion.append_tree': { ...hand({ children: list({ $ref: '#/$defs/node' }) }), $defs: { node: hand({ text: str(), children: list({ $ref: '#/$defs/node' }) }) } },
  'onedrive.list_items': hand({ folder: str(), $top: int(), $select: list(str()) }, ['folder']),
};
