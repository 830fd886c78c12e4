-- A part of the scripts of the dialects: the number that another program has written, if Redis counts with it and Lua has it
-- exactly, or nil. To tonumber "nan", "inf", and "1e300" are numbers as well.
local function whole(text)
  if type(text) ~= 'string' or #text > 15 then return nil end
  return (text == '0' or string.match(text, '^%-?[1-9]%d*$')) and tonumber(text) or nil
end
