-- Several acquisitions as one step: permits.lua, put in below as a function when the library is built, is called
-- for one name after the other, up to the first that is not granted. If that one does not wait, nothing is held of
-- those before it.
--
--   KEYS  five of each name, as permits.lua has them
--   ARGV  for each name how many words follow, and the ARGV of permits.lua
--
-- Answers with the answers of permits.lua, in this order; the last one may be the one that was not granted.

local function permits(KEYS, ARGV)
@permits.lua@
end

local GRANTED, QUEUED = 0, 1
local keys, owners, answers = {}, {}, {}
local at = 1
for i = 1, #KEYS / 5 do
  local count = tonumber(ARGV[at])
  local words = {unpack(ARGV, at + 1, at + count)}
  at = at + count + 1
  keys[i], owners[i] = {unpack(KEYS, 5 * i - 4, 5 * i)}, words[2]
  local answer = permits(keys[i], words)
  answers[i] = answer
  local outcome = type(answer) == 'table' and answer[1] or GRANTED  -- in short: "fence now"
  if type(answer) == 'table' and answer.err then outcome, answers = nil, answer end
  if outcome ~= GRANTED then
    if outcome ~= QUEUED then
      for j = 1, i - 1 do permits(keys[j], {'release', owners[j]}) end
    end
    break
  end
end
return answers
