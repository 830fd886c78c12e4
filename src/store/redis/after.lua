-- A part of permits.lua and countdown.lua: takes "after T" off the head of a record. The record
-- keeps T whatever becomes of the name: a command whose `until` is not later than T is refused,
-- unless it only releases.
local known, rest = match(text or '', '^hf1 after (%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d) (.*)$')
if known then text = 'hf1 ' .. rest end
if known and (fixed or known < clock) then known = nil end
if known then
  -- No client waits for years.
  if known - clock > 100000000000000 then return redis.error_reply('HOLDFAST_CORRUPT the record is damaged') end
  if due <= known and not lets_go then return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' ' .. known) end
  if after and after <= known then after = nil end
end
local says_more = after and verb ~= 'inspect'  -- inspect writes nothing
