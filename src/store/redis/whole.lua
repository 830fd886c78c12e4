-- A part of the scripts of the dialects: converts a number that another program has written, if
-- Redis can count with it and Lua represents it exactly; otherwise returns nil. tonumber accepts
-- "nan", "inf", and "1e300" as well.
local function whole(text)
  if type(text) ~= 'string' or #text > 15 then return nil end
  return (text == '0' or string.match(text, '^%-?[1-9]%d*$')) and tonumber(text) or nil
end
