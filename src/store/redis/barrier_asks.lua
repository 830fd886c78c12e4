-- A part of permits.lua: answers a participant whose barrier has opened, and that only asks. All
-- participants ask at the same time, one after the other, so here the same counts as in mutex.lua. A
-- lease or a queue entry that has expired, a key of the holders that was evicted, and an earlier
-- arrival that is still there go to the general path.
if verb == 'renew' and match(ARGV[5], 'w') and text and sub(text, 1, 12) == 'hf1 barrier ' then
  local waiters, places_end = match(text, '^%d+ %d+ %d+ (%d+) %d+ %d+ (%d+)$', 13)
  local nobody_died = waiters and (waiters == '0' or places_end + 0 > clock + 0)
  local data = nobody_died and call('HMGET', KEYS[2], owner, ARGV[12] or '')
  local fence, lingers = match(data and not data[2] and data[1] or '', '^h %d+ (%d+) %d+ ([01]) ')
  local first_end = fence and call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
  local ends = first_end and first_end + 0 > clock + 0 and call('ZSCORE', KEYS[5], owner)
  if ends then return {GRANTED, fence + 0, ends + 0, clock + 0, 0, lingers + 0, 0, fixed and {}} end
end
