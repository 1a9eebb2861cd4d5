-- Version 1 of the results database: rows first, every aggregate a view over them.
--
-- Once released this text does not change; a later version is a migration of its own. Sizes are tokens, times
-- nanoseconds, regret nats. NULL is "undefined", never a stand-in for a number.

CREATE TABLE run (                            -- one invocation of the program
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed', 'interrupted')),  -- a killed run stays 'running'
  started TEXT NOT NULL,                      -- UTC, ISO 8601
  ended TEXT,
  config_file TEXT NOT NULL,
  config_text TEXT NOT NULL,
  config_sha256 TEXT NOT NULL,
  command TEXT NOT NULL,
  version TEXT NOT NULL,
  source_commit TEXT NOT NULL,
  dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)),
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  engine TEXT NOT NULL,
  seed INTEGER NOT NULL CHECK (seed >= 0),
  CHECK ((status = 'running') = (ended IS NULL))
) STRICT;

CREATE TABLE environment (                    -- machine and build of a run
  run_id INTEGER NOT NULL REFERENCES run(id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE cell (                           -- one point of the matrix; one column per coordinate
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,                   -- SHA-256 of identity
  identity TEXT NOT NULL,                     -- canonical JSON of all that can change an output
  task TEXT NOT NULL,
  split TEXT NOT NULL,
  grader TEXT NOT NULL,
  task_version INTEGER NOT NULL,
  task_options TEXT NOT NULL,                 -- what beside split and grader selects prompts: subset, shots, variant
  data_sha256 TEXT NOT NULL,
  target TEXT NOT NULL,
  target_sha256 TEXT NOT NULL,
  target_options TEXT NOT NULL,
  drafter TEXT NOT NULL,
  drafter_options TEXT NOT NULL,
  drafts INTEGER NOT NULL CHECK (drafts >= 0),        -- K; 0 is plain decoding
  verifier TEXT NOT NULL,
  verifier_options TEXT NOT NULL,
  verifier_keeps TEXT NOT NULL,
  regret_budget REAL,                                 -- B; B, g and M may be infinite, NULL for rules without them
  gate REAL,                                          -- g
  max_exceptions REAL,                                -- M
  max_tokens INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  weight_dtype TEXT NOT NULL,
  compute_dtype TEXT NOT NULL,
  logit_dtype TEXT NOT NULL,
  device TEXT NOT NULL,
  engine TEXT NOT NULL,
  activations TEXT NOT NULL,
  baseline INTEGER NOT NULL CHECK (baseline IN (0, 1))
) STRICT;

CREATE TABLE output (                         -- one completion
  id INTEGER PRIMARY KEY,
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  run_id INTEGER NOT NULL REFERENCES run(id),
  sample_id TEXT NOT NULL,
  repeat INTEGER NOT NULL,
  turn INTEGER NOT NULL CHECK (turn >= 1),    -- of its conversation, from 1
  status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  error TEXT,
  cluster TEXT NOT NULL,                      -- samples of one cluster are drawn together; '' for none
  category TEXT NOT NULL,                     -- what reports group by beside the cluster; '' for none
  prompt_sha256 TEXT NOT NULL,                -- of the rendered prompt
  identity_sha256 TEXT NOT NULL,              -- of the normalised user messages
  tokens BLOB,                                -- ids as 32-bit little-endian words, the one from prefill first
  tokens_sha256 TEXT,                         -- of that blob
  completion TEXT,
  finish_reason TEXT CHECK (finish_reason IN ('eos', 'stop_string', 'length', 'context_limit')),
  prompt_tokens INTEGER,
  output_tokens INTEGER,
  passes INTEGER,
  regret REAL,                                -- the ledger at the end
  exceptions INTEGER,
  prefill_ns INTEGER,
  decode_ns INTEGER,
  UNIQUE (cell_id, sample_id, repeat, turn),
  CHECK ((status = 'failed') = (error IS NOT NULL)),
  CHECK ((status = 'done') = (finish_reason IS NOT NULL))
) STRICT;

-- Reports read these columns of all outputs many times, and the texts beside them of few.
CREATE INDEX output_facts ON output (cell_id, sample_id, repeat, turn, status, output_tokens, passes, finish_reason,
                                     exceptions, regret, tokens_sha256, category, cluster);

CREATE TABLE score (                          -- one grader's word on one completion
  output_id INTEGER NOT NULL REFERENCES output(id) ON DELETE CASCADE,
  scorer TEXT NOT NULL,
  scorer_version INTEGER NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('correct', 'incorrect', 'no_answer', 'unscored')),
  value REAL,
  answer TEXT,
  rule TEXT,                                  -- what found the answer
  outcome TEXT,                               -- class of a code run
  detail TEXT,
  CHECK ((verdict = 'unscored') = (value IS NULL)),
  UNIQUE (output_id, scorer, scorer_version)
) STRICT;

CREATE TABLE judgement (                      -- a judge's word on one reply, or on a pair of replies
  id INTEGER PRIMARY KEY,
  output_id INTEGER NOT NULL REFERENCES output(id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('single', 'pair')),
  baseline TEXT NOT NULL CHECK (baseline IN ('', 'strict', 'reference')),  -- what a pair is against
  baseline_output_id INTEGER REFERENCES output(id) ON DELETE CASCADE,      -- NULL for a reference text
  place INTEGER NOT NULL CHECK (place IN (0, 1, 2)),  -- of the reply in its pair: shown first or second; 0 for a rating
  judge TEXT NOT NULL,                        -- the model that was asked for
  version TEXT NOT NULL,                      -- what it calls itself; of a local target its digest; '' unknown
  prompts TEXT NOT NULL,                      -- the set of prompts: own-1, or a file and its digest
  prompt_sha256 TEXT NOT NULL,                -- of judge, seed, limit and the whole prompt
  seed INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'equal')),  -- equal: both replies are the same text, nobody was asked
  error TEXT,
  reply TEXT,                                 -- the judge's own words
  finish TEXT,                                -- how they ended, as the judge says
  prompt_tokens INTEGER,                      -- NULL: not told, or not asked for this row
  reply_tokens INTEGER,
  judged TEXT NOT NULL,                       -- UTC, ISO 8601
  UNIQUE (output_id, kind, baseline, place, judge, prompts, seed),
  CHECK ((kind = 'pair') = (baseline <> '')),
  CHECK ((kind = 'pair') = (place <> 0)),
  CHECK ((status = 'failed') = (error IS NOT NULL)),
  CHECK ((status = 'done') = (reply IS NOT NULL))
) STRICT;

CREATE TABLE rating (                         -- what a grader read from it
  judgement_id INTEGER NOT NULL REFERENCES judgement(id) ON DELETE CASCADE,
  grader TEXT NOT NULL,
  value REAL,                                 -- rating from 1 to 10, or preference from 1 (baseline) to 2; NULL: none
  PRIMARY KEY (judgement_id, grader)
) STRICT, WITHOUT ROWID;

CREATE TABLE pass (                           -- one target forward over one block of drafts
  output_id INTEGER NOT NULL REFERENCES output(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,                    -- from 0
  drafted INTEGER NOT NULL,
  accepted INTEGER NOT NULL,                  -- before cuts
  kept INTEGER NOT NULL,                      -- after cuts
  committed INTEGER NOT NULL,                 -- kept plus, unless cut, the target's token
  strict_length INTEGER NOT NULL,
  blocked_by INTEGER NOT NULL,                -- flags: 1 gate, 2 cap, 4 budget, 8 headroom, 16 eos guard, 32 strict, 64 head
  PRIMARY KEY (output_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE exception (                      -- an accepted mismatch that was kept
  output_id INTEGER NOT NULL REFERENCES output(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,                    -- from 0
  pass INTEGER NOT NULL,
  output_position INTEGER NOT NULL,           -- from 0; the token from prefill is 0
  block_position INTEGER NOT NULL,
  drafted INTEGER NOT NULL,
  draft INTEGER NOT NULL,
  choice INTEGER NOT NULL,
  regret REAL NOT NULL,
  weight REAL NOT NULL,
  spent_after REAL NOT NULL,
  PRIMARY KEY (output_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE near_tie (                       -- a committed choice whose runner-up was within 1e-3 nats
  output_id INTEGER NOT NULL REFERENCES output(id) ON DELETE CASCADE,
  output_position INTEGER NOT NULL,
  gap REAL NOT NULL,                          -- best minus second logit
  PRIMARY KEY (output_id, output_position)
) STRICT, WITHOUT ROWID;

CREATE TABLE speed_group (                    -- all arms over the same fixed work, once
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  set_key TEXT NOT NULL,                      -- digest of arms and work: groups of different sets are never compared
  number INTEGER NOT NULL,
  UNIQUE (set_key, number)
) STRICT;

CREATE TABLE speed_slot (                     -- one arm's turn in a group
  group_id INTEGER NOT NULL REFERENCES speed_group(id) ON DELETE CASCADE,
  slot INTEGER NOT NULL,                      -- from 0, in the order of time
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  prompts INTEGER NOT NULL CHECK (prompts > 0),
  tokens INTEGER NOT NULL CHECK (tokens >= 0),        -- counted: without those of prefill and those beyond the work
  passes INTEGER NOT NULL,
  drafted INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  post_end_tokens INTEGER NOT NULL,                   -- counted tokens after the first end of sequence
  decode_ns INTEGER NOT NULL CHECK (decode_ns > 0),   -- the clock of record
  prefill_ns INTEGER NOT NULL,
  draft_ns INTEGER NOT NULL,
  verify_ns INTEGER NOT NULL,
  rule_ns INTEGER NOT NULL,
  cache_ns INTEGER NOT NULL,
  tokens_sha256 TEXT NOT NULL,
  PRIMARY KEY (group_id, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE slot_environment (               -- what the machine did meanwhile: core_mhz, load, foreign_share, ...
  group_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  name TEXT NOT NULL,
  samples INTEGER NOT NULL CHECK (samples > 0),
  mean REAL NOT NULL,
  least REAL NOT NULL,
  most REAL NOT NULL,
  PRIMARY KEY (group_id, slot, name),
  FOREIGN KEY (group_id, slot) REFERENCES speed_slot(group_id, slot) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE speed_void (                     -- groups that count nowhere
  group_id INTEGER PRIMARY KEY REFERENCES speed_group(id) ON DELETE CASCADE,
  reason TEXT NOT NULL
) STRICT;

CREATE INDEX speed_slot_cell ON speed_slot (cell_id);

CREATE TABLE speed_prompt (                   -- one prompt of a slot; for the spread between prompts
  group_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  position INTEGER NOT NULL,                          -- of the prompt in the work, from 0
  sample_id TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  decode_ns INTEGER NOT NULL,                         -- prompts that were decoded together share their time
  prefill_ns INTEGER NOT NULL,
  tokens_sha256 TEXT NOT NULL,
  PRIMARY KEY (group_id, slot, position),
  FOREIGN KEY (group_id, slot) REFERENCES speed_slot(group_id, slot) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE speed_tail (                     -- the end of a slot, when no prompt waited and places of the batch stood empty
  group_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  decode_ns INTEGER NOT NULL,
  PRIMARY KEY (group_id, slot),
  FOREIGN KEY (group_id, slot) REFERENCES speed_slot(group_id, slot) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE speed_set (                      -- what a set of groups measures; one that is not here is constant, abba
  set_key TEXT PRIMARY KEY,
  work TEXT NOT NULL CHECK (work IN ('constant', 'reference', 'natural')),  -- measurement.md, 1: F1, F2, N
  design TEXT NOT NULL CHECK (design IN ('abba', 'bcb'))                    -- mirrored, or triples around one cell
) STRICT, WITHOUT ROWID;

CREATE TABLE speed_interval (                 -- bootstrap over the prompts of a set, which no view can compute
  set_key TEXT NOT NULL,
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  reference_id INTEGER NOT NULL REFERENCES cell(id),
  prompts INTEGER NOT NULL,
  groups INTEGER NOT NULL,
  estimate REAL NOT NULL,                             -- sum of the reference's times over sum of the cell's
  low REAL NOT NULL,                                  -- 95 %, percentile
  high REAL NOT NULL,
  resamples INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  PRIMARY KEY (set_key, cell_id, reference_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE spot_check (                     -- timed prompts decoded once more
  set_key TEXT NOT NULL,
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  sample_id TEXT NOT NULL,
  timed_sha256 TEXT NOT NULL,
  again_sha256 TEXT NOT NULL,
  PRIMARY KEY (set_key, cell_id, sample_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE replay (                         -- blocks of a strict run shown to another rule; masks only, no path of its own
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  sample_id TEXT NOT NULL,
  run_id INTEGER NOT NULL REFERENCES run(id),
  passes INTEGER NOT NULL,
  drafted INTEGER NOT NULL,
  strict_committed INTEGER NOT NULL,                  -- tokens that strict made of these blocks
  committed INTEGER NOT NULL,                         -- and this rule
  exceptions INTEGER NOT NULL,
  regret REAL NOT NULL,
  PRIMARY KEY (cell_id, sample_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE manifest (                       -- a frozen setting with everything that holds for it
  campaign TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,                       -- of body
  body TEXT NOT NULL                          -- canonical JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE split (                          -- the prompts of a frozen setting, in the order of the audit
  campaign TEXT NOT NULL REFERENCES manifest(campaign),
  part TEXT NOT NULL CHECK (part IN ('A', 'B')),
  position INTEGER NOT NULL,
  task TEXT NOT NULL,
  sample_id TEXT NOT NULL,
  identity_sha256 TEXT NOT NULL,              -- of the normalised user messages
  prompt TEXT NOT NULL,                       -- user messages joined by LF
  sample TEXT NOT NULL,                       -- canonical JSON of fields and targets: replies are scored again from it
  PRIMARY KEY (campaign, part, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE record (                         -- the chain of a campaign (measurement.md, section 10)
  campaign TEXT NOT NULL,
  seq INTEGER NOT NULL,
  body TEXT NOT NULL,                         -- canonical JSON
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (campaign, seq)
) STRICT, WITHOUT ROWID;

-- Two-sided 95 % quantiles of Student's t (probability 0.975), which SQLite cannot compute; filled below.
CREATE TABLE t_quantile (degrees INTEGER PRIMARY KEY, value REAL NOT NULL) STRICT;

-- Per cell and grader. Accuracy is correct / (correct + incorrect + no answer): unscored replies are left out, failed
-- samples have no score and are counted apart. A reply is capped when it ended at a limit; under `capped_wrong` it
-- counts as incorrect whatever could be read from it, under `as_scored` by its verdict (scoring.md, 1.2). Undecided
-- ones, which a comparison ran out of its limits on, are incorrect and counted (3.6).
-- Intervals are Wilson's with z = 1.959963984540054, z * z = 3.841458820694125.
CREATE VIEW accuracy AS
WITH reply AS (
  SELECT output.cell_id, score.scorer, score.scorer_version, score.verdict,
         coalesce(score.detail, '') LIKE 'undecided:%' AS undecided,
         output.finish_reason IN ('length', 'context_limit') AS capped
  FROM output JOIN score ON score.output_id = output.id
  WHERE output.status = 'done'
), tally AS (
  SELECT cell_id, scorer, scorer_version,
         sum(verdict <> 'unscored') AS n,
         sum(verdict = 'correct') AS correct,
         sum(verdict = 'incorrect') AS incorrect,
         sum(verdict = 'no_answer') AS no_answer,
         sum(verdict = 'unscored') AS unscored,
         sum(undecided) AS undecided,
         sum(capped) AS capped,
         sum(verdict = 'correct' AND NOT capped) AS uncapped_correct
  FROM reply GROUP BY cell_id, scorer, scorer_version
), wide AS (                                  -- half widths times (n + z^2)
  SELECT *,
         1.959963984540054 * sqrt(1.0 * uncapped_correct * (n - uncapped_correct) / n + 3.841458820694125 / 4)
           AS half_wrong,
         1.959963984540054 * sqrt(1.0 * correct * (n - correct) / n + 3.841458820694125 / 4) AS half_scored
  FROM tally
)
SELECT cell_id, scorer, scorer_version, n, correct, incorrect, no_answer, unscored, undecided, capped,
       (SELECT count(*) FROM output WHERE output.cell_id = wide.cell_id AND output.status = 'failed') AS failed,
       1.0 * uncapped_correct / n AS capped_wrong,
       CASE WHEN n = 0 THEN NULL WHEN uncapped_correct = 0 THEN 0.0
            ELSE (uncapped_correct + 3.841458820694125 / 2 - half_wrong) / (n + 3.841458820694125) END
         AS capped_wrong_low,
       CASE WHEN n = 0 THEN NULL WHEN uncapped_correct = n THEN 1.0
            ELSE (uncapped_correct + 3.841458820694125 / 2 + half_wrong) / (n + 3.841458820694125) END
         AS capped_wrong_high,
       1.0 * correct / n AS as_scored,
       CASE WHEN n = 0 THEN NULL WHEN correct = 0 THEN 0.0
            ELSE (correct + 3.841458820694125 / 2 - half_scored) / (n + 3.841458820694125) END AS as_scored_low,
       CASE WHEN n = 0 THEN NULL WHEN correct = n THEN 1.0
            ELSE (correct + 3.841458820694125 / 2 + half_scored) / (n + 3.841458820694125) END AS as_scored_high
FROM wide;

-- Ratio of throughputs on fixed work, per set of groups, cell and reference. `strict`: the strict cell with the same
-- drafter (none for plain decoding); `plain`: the strict cell without a drafter; both of the same task, target and
-- decoding. A group gives L = mean ln t(reference) - mean ln t(cell) over its slots, if all of them counted equal
-- tokens; the interval is exp(mean L -/+ t sd / sqrt(groups)), NULL with fewer than two groups (measurement.md, 2-3).
-- It knows the run-to-run noise only; `speed` has the wider of it and the bootstrap over prompts. A cell against itself
-- is 1 without an interval. Natural endings are no equal work: `time_to_answer`.
CREATE VIEW speed_ratio AS
WITH arm AS (
  SELECT speed_group.set_key, speed_slot.group_id, speed_slot.cell_id,
         avg(ln(speed_slot.decode_ns)) AS log_ns, min(speed_slot.tokens) AS least, max(speed_slot.tokens) AS most
  FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
    AND speed_group.set_key NOT IN (SELECT set_key FROM speed_set WHERE work = 'natural')
  GROUP BY speed_slot.group_id, speed_slot.cell_id
), member AS (
  SELECT DISTINCT set_key, cell_id FROM arm
), pair AS (
  SELECT member.set_key, member.cell_id, kind.reference, min(other.cell_id) AS reference_id
  FROM member
  JOIN cell ON cell.id = member.cell_id
  JOIN (SELECT 'strict' AS reference UNION ALL SELECT 'plain') AS kind
  JOIN member AS other ON other.set_key = member.set_key
  JOIN cell AS base ON base.id = other.cell_id
  WHERE base.verifier = 'strict'
    AND CASE kind.reference
          WHEN 'plain' THEN base.drafter = 'none' AND base.drafts = 0
          ELSE cell.drafter <> 'none' AND base.drafter = cell.drafter
               AND base.drafter_options = cell.drafter_options AND base.drafts = cell.drafts
        END
    AND base.task = cell.task AND base.split = cell.split AND base.task_version = cell.task_version
    AND base.data_sha256 = cell.data_sha256 AND base.task_options = cell.task_options
    AND base.target = cell.target AND base.target_sha256 = cell.target_sha256
    AND base.target_options = cell.target_options
    AND base.max_tokens = cell.max_tokens AND base.batch = cell.batch
    AND base.weight_dtype = cell.weight_dtype AND base.compute_dtype = cell.compute_dtype
    AND base.logit_dtype = cell.logit_dtype AND base.device = cell.device AND base.engine = cell.engine
    AND base.activations = cell.activations
  GROUP BY member.set_key, member.cell_id, kind.reference
), ratio AS (
  SELECT pair.set_key, pair.cell_id, pair.reference, pair.reference_id, base.log_ns - arm.log_ns AS log_ratio
  FROM pair
  JOIN arm ON arm.set_key = pair.set_key AND arm.cell_id = pair.cell_id
  JOIN arm AS base ON base.group_id = arm.group_id AND base.cell_id = pair.reference_id
  WHERE arm.least = base.least AND arm.most = base.most AND arm.least = arm.most
), centre AS (
  SELECT set_key, cell_id, reference, reference_id, count(*) AS groups, avg(log_ratio) AS mean_log
  FROM ratio GROUP BY set_key, cell_id, reference
), spread AS (
  SELECT centre.*,
         CASE WHEN groups > 1 AND centre.cell_id <> centre.reference_id
              THEN sqrt(sum((log_ratio - mean_log) * (log_ratio - mean_log)) / (groups - 1)) END AS sd_log
  FROM centre JOIN ratio USING (set_key, cell_id, reference)
  GROUP BY set_key, cell_id, reference
), width AS (                                 -- beyond 200 degrees: the expansion of t in powers of 1 / degrees, good to 1e-9
  SELECT spread.*,
         sd_log / sqrt(groups) * coalesce(
           (SELECT value FROM t_quantile WHERE degrees = groups - 1),
           1.959963984540054 + (2.372271230298562 + (2.8224987157396104 + 2.5558496795077216 / (groups - 1))
             / (groups - 1)) / (groups - 1)) AS half_log
  FROM spread
)
SELECT set_key, cell_id, reference, reference_id, groups, mean_log, sd_log,
       exp(mean_log) AS estimate, exp(mean_log - half_log) AS low, exp(mean_log + half_log) AS high
FROM width;

-- Per set of groups and cell: throughput on fixed work, where the time went, and both ratios. Intervals are the wider of
-- the one over groups (run-to-run noise) and the one over prompts (which prompts were drawn); a dash with one group.
CREATE VIEW speed AS
SELECT total.*, coalesce(speed_set.work, 'constant') AS work, coalesce(speed_set.design, 'abba') AS design,
       strict.estimate AS vs_strict,
       CASE WHEN strict_prompts.high / strict_prompts.low > strict.high / strict.low
            THEN strict_prompts.low ELSE strict.low END AS vs_strict_low,
       CASE WHEN strict_prompts.high / strict_prompts.low > strict.high / strict.low
            THEN strict_prompts.high ELSE strict.high END AS vs_strict_high,
       plain.estimate AS vs_plain,
       CASE WHEN plain_prompts.high / plain_prompts.low > plain.high / plain.low
            THEN plain_prompts.low ELSE plain.low END AS vs_plain_low,
       CASE WHEN plain_prompts.high / plain_prompts.low > plain.high / plain.low
            THEN plain_prompts.high ELSE plain.high END AS vs_plain_high
FROM (
  SELECT speed_group.set_key, speed_slot.cell_id, max(speed_group.id) AS last_group_id,
         count(DISTINCT speed_group.id) AS groups, sum(tokens) AS tokens,
         1e9 * sum(tokens) / sum(decode_ns) AS tokens_per_s,
         1.0 * sum(tokens) / sum(passes) AS tokens_per_pass,
         1.0 * sum(post_end_tokens) / sum(tokens) AS post_end_fraction,
         1e-6 * sum(draft_ns) / sum(passes) AS draft_ms_per_pass,
         1e-6 * sum(verify_ns) / sum(passes) AS verify_ms_per_pass,
         1e-6 * sum(rule_ns) / sum(passes) AS rule_ms_per_pass,
         1e-6 * sum(cache_ns) / sum(passes) AS cache_ms_per_pass,
         1e-6 * sum(rule_ns) / sum(tokens) AS rule_ms_per_token
  FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
    AND speed_group.set_key NOT IN (SELECT set_key FROM speed_set WHERE work = 'natural')
  GROUP BY speed_group.set_key, speed_slot.cell_id
) AS total
LEFT JOIN speed_set ON speed_set.set_key = total.set_key
LEFT JOIN speed_ratio AS strict
  ON strict.set_key = total.set_key AND strict.cell_id = total.cell_id AND strict.reference = 'strict'
LEFT JOIN speed_interval AS strict_prompts ON strict_prompts.set_key = total.set_key
  AND strict_prompts.cell_id = total.cell_id AND strict_prompts.reference_id = strict.reference_id
LEFT JOIN speed_ratio AS plain
  ON plain.set_key = total.set_key AND plain.cell_id = total.cell_id AND plain.reference = 'plain'
LEFT JOIN speed_interval AS plain_prompts ON plain_prompts.set_key = total.set_key
  AND plain_prompts.cell_id = total.cell_id AND plain_prompts.reference_id = plain.reference_id;

-- The set of groups that speaks for a cell: the latest of constant work, or of reference lengths where those were timed
-- and more than a fifth of some arm's constant work stood after the natural end (measurement.md, 1).
CREATE VIEW speed_primary AS
WITH arm AS (
  SELECT speed_group.set_key, speed_slot.cell_id, coalesce(speed_set.work, 'constant') AS work,
         max(speed_group.id) AS last_group_id, 1.0 * sum(post_end_tokens) / sum(tokens) AS post_end_fraction
  FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
  LEFT JOIN speed_set ON speed_set.set_key = speed_group.set_key
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
  GROUP BY speed_group.set_key, speed_slot.cell_id
), ranked AS (
  SELECT *, max(post_end_fraction) OVER (PARTITION BY set_key) AS worst,
         row_number() OVER (PARTITION BY cell_id, work ORDER BY last_group_id DESC) AS age
  FROM arm WHERE work <> 'natural'
), latest AS (
  SELECT cell_id, max(CASE WHEN work = 'constant' THEN set_key END) AS constant_key,
         max(CASE WHEN work = 'constant' THEN worst END) AS worst,
         max(CASE WHEN work = 'reference' THEN set_key END) AS reference_key
  FROM ranked WHERE age = 1 GROUP BY cell_id
)
SELECT cell_id, CASE WHEN reference_key IS NOT NULL AND (constant_key IS NULL OR worst > 0.2)
                     THEN reference_key ELSE constant_key END AS set_key
FROM latest;

-- Task x setting: accuracy of the cell's own grader (latest version) beside the speed of its primary set of groups.
-- Accept length is committed tokens per pass in quality runs, the token from prefill excluded: plain decoding has 1.
CREATE VIEW matrix AS
WITH reply AS (
  SELECT cell_id,
         sum(status = 'done') AS done, sum(status = 'failed') AS failed,
         sum(status = 'done' AND finish_reason IN ('length', 'context_limit')) AS capped,
         1.0 * sum(CASE WHEN status = 'done' THEN output_tokens - 1 END)
           / sum(CASE WHEN status = 'done' THEN passes END) AS accept_length,
         avg(CASE WHEN status = 'done' THEN regret END) AS regret_per_request,
         avg(CASE WHEN status = 'done' THEN exceptions END) AS exceptions_per_request
  FROM output GROUP BY cell_id
)
SELECT cell.id AS cell_id, cell.task, cell.split, cell.task_options, cell.grader, cell.target, cell.target_options, cell.drafter,
       cell.drafter_options, cell.drafts, cell.verifier, cell.verifier_options, cell.verifier_keeps, cell.device,
       cell.engine, cell.max_tokens, cell.batch, cell.baseline,
       coalesce(accuracy.n, 0) AS n, coalesce(reply.failed, 0) AS failed, coalesce(accuracy.correct, 0) AS correct,
       coalesce(reply.capped, 0) AS capped, coalesce(accuracy.no_answer, 0) AS no_answer,
       coalesce(accuracy.unscored, 0) AS unscored, coalesce(accuracy.undecided, 0) AS undecided,
       accuracy.capped_wrong AS accuracy_capped_wrong, accuracy.capped_wrong_low AS accuracy_capped_wrong_low,
       accuracy.capped_wrong_high AS accuracy_capped_wrong_high,
       accuracy.as_scored AS accuracy_as_scored, accuracy.as_scored_low AS accuracy_as_scored_low,
       accuracy.as_scored_high AS accuracy_as_scored_high,
       speed.vs_strict, speed.vs_strict_low, speed.vs_strict_high,
       speed.vs_plain, speed.vs_plain_low, speed.vs_plain_high,
       speed.tokens_per_s, coalesce(speed.groups, 0) AS groups, speed.post_end_fraction, speed.work AS speed_work,
       reply.accept_length, reply.regret_per_request, reply.exceptions_per_request
FROM cell
LEFT JOIN reply ON reply.cell_id = cell.id
LEFT JOIN accuracy ON accuracy.cell_id = cell.id AND accuracy.scorer = cell.grader
  AND accuracy.scorer_version = (
    SELECT max(latest.scorer_version) FROM output JOIN score AS latest ON latest.output_id = output.id
    WHERE output.cell_id = cell.id AND latest.scorer = cell.grader)
LEFT JOIN speed_primary ON speed_primary.cell_id = cell.id
LEFT JOIN speed ON speed.cell_id = cell.id AND speed.set_key = speed_primary.set_key
ORDER BY cell.id;

INSERT INTO t_quantile (degrees, value) VALUES
  (1, 12.706204736174705), (2, 4.3026527297494639), (3, 3.1824463052837096), (4, 2.7764451051977944),
  (5, 2.5705818356363155), (6, 2.44691185114497), (7, 2.3646242515927853), (8, 2.3060041352041667),
  (9, 2.2621571627982055), (10, 2.2281388519862747), (11, 2.2009851600916399), (12, 2.1788128296672289),
  (13, 2.1603686564627925), (14, 2.1447866879178038), (15, 2.1314495455597757), (16, 2.1199052992212547),
  (17, 2.1098155778333171), (18, 2.1009220402410385), (19, 2.0930240544083098), (20, 2.0859634472658648),
  (21, 2.0796138447276804), (22, 2.0738730679040262), (23, 2.0686576104190487), (24, 2.0638985616280258),
  (25, 2.0595385527532977), (26, 2.0555294386428732), (27, 2.0518305164802856), (28, 2.0484071417952452),
  (29, 2.0452296421327043), (30, 2.0422724563012383), (31, 2.0395134463964085), (32, 2.036933343460102),
  (33, 2.0345152974493387), (34, 2.032244509317719), (35, 2.0301079282503432), (36, 2.0280940009804509),
  (37, 2.0261924630291098), (38, 2.0243941639119696), (39, 2.0226909200367611), (40, 2.0210753903062734),
  (41, 2.019540970441376), (42, 2.0180817028184447), (43, 2.0166921992278244), (44, 2.0153675744437638),
  (45, 2.0141033888808467), (46, 2.0128955989194292), (47, 2.0117405137297659), (48, 2.0106347576242322),
  (49, 2.0095752371292397), (50, 2.0085591121007611), (51, 2.007583770315836), (52, 2.0066468050616883),
  (53, 2.005745995317869), (54, 2.004879288188057), (55, 2.0040447832891459), (56, 2.0032407188478722),
  (57, 2.0024654592910073), (58, 2.0017174841452361), (59, 2.0009953780882677), (60, 2.0002978220142605),
  (61, 1.9996235849949397), (62, 1.998971517033379), (63, 1.9983405425207416), (64, 1.997729654317693),
  (65, 1.9971379083920041), (66, 1.996564418952312), (67, 1.9960083540252967), (68, 1.9954689314298439),
  (69, 1.994945415107238), (70, 1.9944371117711866), (71, 1.9939433678456258), (72, 1.9934635666618724),
  (73, 1.9929971258898551), (74, 1.9925434951809327), (75, 1.9921021540022421), (76, 1.9916726096446645),
  (77, 1.991254395388385), (78, 1.9908470688116909), (79, 1.9904502102301289), (80, 1.9900634212544462),
  (81, 1.9896863234569029), (82, 1.9893185571365725), (83, 1.9889597801751628), (84, 1.9886096669757091),
  (85, 1.988267907477222), (86, 1.9879342062390206), (87, 1.9876082815890711), (88, 1.9872898648311697),
  (89, 1.9869786995062815), (90, 1.9866745407037684), (91, 1.9863771544186181), (92, 1.9860863169511304),
  (93, 1.9858018143458234), (94, 1.9855234418666044), (95, 1.9852510035054982), (96, 1.9849843115224575),
  (97, 1.9847231860139847), (98, 1.9844674545084818), (99, 1.9842169515864175), (100, 1.9839715185235523),
  (101, 1.9837310029556062), (102, 1.9834952585628797), (103, 1.983264144773457), (104, 1.9830375264837259),
  (105, 1.9828152737950482), (106, 1.9825972617655006), (107, 1.9823833701756912), (108, 1.9821734833077272),
  (109, 1.9819674897364826), (110, 1.9817652821323723), (111, 1.981566757074901), (112, 1.9813718148763059),
  (113, 1.9811803594146612), (114, 1.9809922979758573), (115, 1.98080754110391), (116, 1.9806260024590901),
  (117, 1.9804475986834027), (118, 1.9802722492729746), (119, 1.9800998764569399), (120, 1.9799304050824408),
  (121, 1.9797637625053871), (122, 1.9795998784866389), (123, 1.9794386850933041), (124, 1.9792801166048555),
  (125, 1.9791241094237978), (126, 1.9789706019906287), (127, 1.9788195347028542), (128, 1.9786708498378356),
  (129, 1.9785244914792579), (130, 1.9783804054470224), (131, 1.9782385392303802), (132, 1.9780988419241308),
  (133, 1.9779612641677263), (134, 1.9778257580871252), (135, 1.977692277239253), (136, 1.9775607765589356),
  (137, 1.977431212308175), (138, 1.9773035420276511), (139, 1.9771777244903336), (140, 1.9770537196570992),
  (141, 1.976931488634253), (142, 1.9768109936328604), (143, 1.9766921979297984), (144, 1.9765750658304438),
  (145, 1.9764595626329182), (146, 1.9763456545938133), (147, 1.9762333088953275), (148, 1.9761224936137447),
  (149, 1.9760131776891925), (150, 1.9759053308966205), (151, 1.9757989238179397), (152, 1.9756939278152707),
  (153, 1.9755903150052493), (154, 1.9754880582343406), (155, 1.9753871310551158), (156, 1.9752875077034491),
  (157, 1.9751891630765916), (158, 1.9750920727120851), (159, 1.9749962127674764), (160, 1.9749015600007991),
  (161, 1.9748080917517876), (162, 1.9747157859237914), (163, 1.9746246209663613), (164, 1.9745345758584758),
  (165, 1.9744456300923829), (166, 1.97435776365803), (167, 1.9742709570280561), (168, 1.9741851911433255),
  (169, 1.9741004473989771), (170, 1.9740167076309705), (171, 1.973933954103107), (172, 1.9738521694945066),
  (173, 1.9737713368875223), (174, 1.973691439756074), (175, 1.9736124619543848), (176, 1.9735343877061045),
  (177, 1.9734572015938037), (178, 1.9733808885488245), (179, 1.9733054338414739), (180, 1.9732308230715458),
  (181, 1.9731570421591598), (182, 1.9730840773359035), (183, 1.9730119151362673), (184, 1.9729405423893604),
  (185, 1.9728699462108969), (186, 1.9728001139954422), (187, 1.9727310334089103), (188, 1.9726626923813006),
  (189, 1.9725950790996685), (190, 1.9725281820013183), (191, 1.9724619897672112), (192, 1.9723964913155812),
  (193, 1.9723316757957501), (194, 1.9722675325821355), (195, 1.9722040512684437), (196, 1.972141221662042),
  (197, 1.9720790337785027), (198, 1.9720174778363147), (199, 1.9719565442517538), (200, 1.9718962236339094);
