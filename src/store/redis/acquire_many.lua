-- Several acquisitions as one step: permits.lua, put in below as a function when the library is built, is called
-- for one name after the other, up to the first that is not granted. If that one does not wait, nothing is held of
-- those before it. If all are granted, tokens may be asked for too: rate.lua, in the same way; and if there are none,
-- nothing is held at all.
--
--   KEYS  five of each name, as permits.lua has them; those of rate.lua, if tokens are asked for
--   ARGV  how many names; for each how many words follow, and the ARGV of permits.lua; the ARGV of rate.lua; at last,
--         for all, until when it may be carried out, as permits.lua has it
--
-- Answers with the answers of both, in this order; the last one may be the one that was not granted.

local function permits(KEYS, ARGV)
@permits.lua@
end

local function rate(KEYS, ARGV)
@rate.lua@
end

local GRANTED, QUEUED = 0, 1
local keys, owners, answers = {}, {}, {}
local names, at = tonumber(ARGV[1]), 2
local stamp = ARGV[#ARGV]
ARGV[#ARGV] = nil

local function give_back(count)
  for j = 1, count do permits(keys[j], {'release', owners[j], stamp}) end
end

for i = 1, names do
  local count = tonumber(ARGV[at])
  local words = {unpack(ARGV, at + 1, at + count)}
  at = at + count + 1
  words[#words + 1] = stamp
  keys[i], owners[i] = {unpack(KEYS, 5 * i - 4, 5 * i)}, words[2]
  local answer = permits(keys[i], words)
  answers[i] = answer
  local outcome = type(answer) == 'table' and answer[1] or GRANTED  -- in short: "fence now"
  if type(answer) == 'table' and answer.err then outcome, answers = nil, answer end
  if outcome ~= GRANTED then
    if outcome ~= QUEUED then give_back(i - 1) end
    return answers
  end
end

if #KEYS > 5 * names then
  local answer = rate({unpack(KEYS, 5 * names + 1)}, {unpack(ARGV, at)})
  answers[names + 1] = answer
  if answer[1] ~= GRANTED then give_back(names) end
  if answer.err then answers = answer end
end
return answers
