-- The retention job deletes a delivered delivery with its last attempt. A replay adds the delivery again if it is needed.
GRANT DELETE ON deliveries TO cuota_app;
