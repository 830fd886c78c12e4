-- Several acquisitions as one step. The build puts permits.lua in below as a function, which is
-- called for one name after the other, up to the first that is not granted. If that one does not
-- wait, all names before it are released. If all are granted, the command may also take tokens, by
-- rate.lua in the same way; if there are not enough tokens, all names are released.
--
--   KEYS  five of each name, as in permits.lua; those of rate.lua, if the command takes tokens
--   ARGV  how many names; for each name the number of its arguments, and the ARGV of permits.lua;
--         the ARGV of rate.lua; at the end, for all, until when the command may be carried out, as
--         in permits.lua
--
-- Returns the answers of both scripts, in this order; the last one may be the one that was not
-- granted.

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
  local outcome = type(answer) == 'table' and answer[1] or GRANTED  -- the short form: "fence now"
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
